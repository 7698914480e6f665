/* safetensors.h: the inside of an open safetensors file. */
#ifndef PERIGEE_SAFETENSORS_H
#define PERIGEE_SAFETENSORS_H
#include <stdint.h>

#include "engine/base/array.h"
#include "engine/base/map.h"
#include "engine/base/numbers.h"
#include "engine/perigee.h"

/* The maximum size of a header in bytes, as in the safetensors package. */
enum { MAX_HEADER = 100000000 };

/* What safetensors_write.c adds: each tensor begins at a multiple of SAFETENSORS_LINE bytes, where need be after a filler
 * NAME.filler; the last tensor is `checksums`. */
enum { SAFETENSORS_LINE = 64 };
#define SAFETENSORS_CHECKSUMS "checksums"
#define SAFETENSORS_FILLER ".filler"

/* I32 values in `checksums`, for a file of so many other tensors: one for the header, one for each tensor, zeros, one for all
 * of these. They fill whole lines. */
static inline int64_t safetensors_checksum_words(int64_t tensors) { return round_up(tensors + 2, SAFETENSORS_LINE / 4); }

/* A type of the format. */
typedef struct safetensors_type {
  const char *name;
  int bits, dtype; /* dtype: ours or -1 */
} safetensors_type;

/* A tensor. This struct and safetensors_pair begin with their name, so that the same functions sort and find both. */
typedef struct safetensors_entry {
  const char *name;
  const safetensors_type *type;
  int ndim; /* may be larger than PGEE_MAX_DIMS; `shape` has only the first dimensions */
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

/* For qsort of pointers to entries: by begin, then by end, then by the order in the header. */
int safetensors_by_begin(const void *a, const void *b);

#endif
