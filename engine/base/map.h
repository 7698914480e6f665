/* map.h: a file's bytes, mapped read-only or copied. Reference counted: every tensor that is a view of it holds it. */
#ifndef PERIGEE_MAP_H
#define PERIGEE_MAP_H
#include <stdatomic.h>
#include <stdint.h>

typedef struct map {
  _Atomic int64_t refs;
  const char *data;
  int64_t bytes; /* at least 1 */
  char *copy;    /* the same as data if the file was read into memory, NULL if it is mapped */
  char *path;
} map;

/* Opens a file. copy = 0 maps it, copy = 1 reads it into memory, so that later changes of the file have no effect. PGEE_SYSTEM,
 * naming the path, if the file is missing, unreadable, not a regular file or empty. */
int map_open(map **out, const char *path, int copy);
/* One more reference; m may be NULL. */
map *map_hold(map *m);
/* Releases one reference; the last one unmaps the file or frees the copy. m may be NULL. */
void map_free(map *m);

#endif
