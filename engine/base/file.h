/* file.h: a file that is written whole or not at all. */
#ifndef PERIGEE_FILE_H
#define PERIGEE_FILE_H
#include <stdint.h>

typedef struct file file;

/* Begins a file that is to be `path`: under another name in the same folder, where whatever earlier processes began and did not
 * live to end is removed. A link is followed, and stays. A file that is there gives its owner and permissions, and must be one
 * that this process may write to. PGEE_SYSTEM if it cannot be written there. */
int file_new(file **out, const char *path);
int file_write(file *f, const void *bytes, int64_t count);
/* Makes it `path`, durably. */
int file_keep(file *f);
/* Ends it; if it was not kept nothing of it is left. NULL does nothing. */
void file_free(file *f);

#endif
