/* file.h: a file that is written whole or not at all. */
#ifndef PERIGEE_FILE_H
#define PERIGEE_FILE_H
#include <stdint.h>

typedef struct file file;

/* Begins a new file that will replace `path`. It is written under another name in the same folder; files that killed processes
 * left there are removed. If `path` is a symbolic link, its target will be replaced. The new file gets the owner and the
 * permissions of an existing file, which this process must be allowed to write to. PGEE_SYSTEM if the file cannot be written. */
int file_new(file **out, const char *path);
int file_write(file *f, const void *bytes, int64_t count);
/* Flushes the file to the disk and renames it to `path`. */
int file_keep(file *f);
/* Frees the handle, and removes the new file if it was not kept. NULL does nothing. */
void file_free(file *f);

#endif
