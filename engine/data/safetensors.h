/* safetensors.h: what an open safetensors file is inside the engine. */
#ifndef PERIGEE_SAFETENSORS_H
#define PERIGEE_SAFETENSORS_H
#include <stdint.h>

#include "engine/base/array.h"
#include "engine/base/map.h"
#include "engine/perigee.h"

/* Bytes of a header: the limit of the reference implementation. */
enum { MAX_HEADER = 100000000 };

/* A type of the format. */
typedef struct safetensors_type {
  const char *name;
  int bits, dtype; /* dtype: ours or -1 */
} safetensors_type;

/* Both begin with their name: they are sorted and found alike. */
typedef struct safetensors_entry {
  const char *name;
  const safetensors_type *type;
  int ndim; /* may be more than there is room for in shape */
  int64_t shape[PGEE_MAX_DIMS];
  int64_t count;      /* elements */
  int64_t begin, end; /* in the data */
} safetensors_entry;

typedef struct safetensors_pair {
  const char *key, *value;
} safetensors_pair;

struct pgee_safetensors {
  map *file;
  const char *data; /* where offsets count from */
  int64_t data_bytes;
  char *strings;
  ARRAY(safetensors_entry) tensors;
  ARRAY(safetensors_pair) metadata;
  void **sorted_tensors, **sorted_metadata; /* pointers to the items, by name */
};

/* For qsort over entry *: by offset; of two at the same place the one that ends first, then the one that stands first. */
int safetensors_by_begin(const void *a, const void *b);

#endif
