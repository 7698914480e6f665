/* safetensors_write.c: writes safetensors files. safetensors_verify.c checks them.
 *
 *   | header length | header, sorted, padded to 64 | tensor | NAME.filler | tensor | ... | checksums |
 *
 * Every tensor begins at a multiple of 64, so that the kernels can read it where it is mapped. Checksums stand last: those of the
 * data are known once it is written, and the header, which says where they are, has one of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/checksum.h"
#include "engine/base/array.h"
#include "engine/base/file.h"
#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "safetensors.h"
#include "engine/base/status.h"
#include "tensor.h"

/* ---- What is to be written ---------------------------------------------------------------------------------------- */

/* A tensor of the file, or a filler. */
typedef struct part {
  const char *name;
  const pgee_tensor *tensor; /* NULL: zeros */
  const char *dtype;
  int ndim;
  int64_t shape[PGEE_MAX_DIMS];
  int64_t begin, bytes;
  char *own; /* the name, if it was made here */
} part;

typedef struct text {
  ARRAY(char) bytes;
  int status;
} text;

typedef struct writing {
  part *parts; /* in the order of their offsets */
  int64_t count;
  text header;
  uint32_t *sums;
} writing;

static int by_name(const void *a, const void *b) {
  const char *const *x = a, *const *y = b;
  return strcmp(*x, *y);
}

static int by_name_of(const void *a, const void *b) { return by_name(*(const void *const *)a, *(const void *const *)b); }

static void part_place(part *p, int64_t *at) {
  p->begin = *at;
  *at += p->bytes;
}

static int part_filler(part *p, const part *before, int64_t bytes) {
  size_t length = strlen(before->name);
  p->own = mem_new((int64_t)(length + sizeof SAFETENSORS_FILLER));
  if (!p->own)
    return PGEE_MEMORY;
  memcpy(p->own, before->name, length);
  memcpy(p->own + length, SAFETENSORS_FILLER, sizeof SAFETENSORS_FILLER);
  p->name = p->own;
  p->dtype = pgee_dtype_name(PGEE_U8);
  p->ndim = 1;
  p->shape[0] = p->bytes = bytes;
  return PGEE_OK;
}

static int part_tensor(part *p, const char *name, const pgee_tensor *t, int64_t i) {
  char what[64];
  snprintf(what, sizeof what, "tensor %lld", (long long)i + 1);
  if (!name)
    return fail(PGEE_ARGUMENT, "the name of %s is NULL", what);
  if (strcmp(name, "__metadata__") == 0)
    return fail(PGEE_ARGUMENT, "%s has the name __metadata__, which means something else in the format", what);
  TRY(tensor_expect(t, what, -1, -1, -1, -1));
  TRY(tensor_expect_memory(t, what));
  *p = (part){.name = name, .tensor = t, .dtype = pgee_dtype_name(t->dtype), .ndim = t->ndim};
  memcpy(p->shape, t->shape, sizeof p->shape);
  p->bytes = tensor_count(t) * pgee_dtype_bytes(t->dtype);
  return PGEE_OK;
}

/* The parts with their places, the checksums last. */
static int writing_parts(writing *w, const char *const *names, const pgee_tensor *const *tensors, int64_t count) {
  int64_t at = 0, n = 0;
  part *given = mem_array(count, sizeof *given);
  w->parts = mem_array(2 * count + 1, sizeof *w->parts);
  int status = given && w->parts ? PGEE_OK : PGEE_MEMORY;
  for (int64_t i = 0; i < count && status == PGEE_OK; i++)
    status = part_tensor(&given[i], names[i], tensors[i], i);
  if (status == PGEE_OK)
    qsort(given, (size_t)count, sizeof *given, by_name);
  for (int64_t i = 0; i < count && status == PGEE_OK; i++) {
    w->parts[n] = given[i];
    part_place(&w->parts[n], &at);
    int64_t fill = round_up(at, SAFETENSORS_LINE) - at;
    w->count = ++n;
    if (fill && (status = part_filler(&w->parts[n], &w->parts[n - 1], fill)) == PGEE_OK) {
      part_place(&w->parts[n], &at);
      w->count = ++n;
    }
  }
  mem_free(given);
  if (status != PGEE_OK)
    return status;
  int64_t words = safetensors_checksum_words(n);
  w->parts[n] =
      (part){.name = SAFETENSORS_CHECKSUMS, .dtype = pgee_dtype_name(PGEE_S32), .ndim = 1, .shape = {words}, .bytes = 4 * words};
  part_place(&w->parts[n], &at);
  w->count = n + 1;
  w->sums = mem_array(words, sizeof *w->sums);
  return w->sums ? PGEE_OK : PGEE_MEMORY;
}

/* ---- The header --------------------------------------------------------------------------------------------------- */

/* Appends bytes; after a failure nothing. */
static void put(text *t, const char *bytes, int64_t count) {
  if (t->status == PGEE_OK)
    t->status = ARRAY_RESERVE(&t->bytes, count);
  if (t->status == PGEE_OK) {
    memcpy(t->bytes.list + t->bytes.count, bytes, (size_t)count);
    t->bytes.count += count;
  }
}

static void put_text(text *t, const char *s) { put(t, s, (int64_t)strlen(s)); }

static void put_number(text *t, int64_t n) {
  char digits[24];
  put(t, digits, snprintf(digits, sizeof digits, "%lld", (long long)n));
}

static void put_string(text *t, const char *s) {
  put_text(t, "\"");
  for (const char *from = s;; s++) {
    unsigned char c = (unsigned char)*s;
    if (c >= ' ' && c != '"' && c != '\\')
      continue;
    put(t, from, s - from);
    if (!c)
      break;
    char escape[8];
    put(t, escape, snprintf(escape, sizeof escape, c < ' ' ? "\\u%04x" : "\\%c", c));
    from = s + 1;
  }
  put_text(t, "\"");
}

static void put_list(text *t, const int64_t *numbers, int count) {
  for (int i = 0; i < count; i++) {
    put_text(t, i ? "," : "[");
    put_number(t, numbers[i]);
  }
  put_text(t, "]");
}

static void put_part(text *t, const part *p) {
  const int64_t offsets[2] = {p->begin, p->begin + p->bytes};
  put_string(t, p->name);
  put_text(t, ":{\"dtype\":\"");
  put_text(t, p->dtype);
  put_text(t, "\",\"shape\":");
  put_list(t, p->shape, p->ndim);
  put_text(t, ",\"data_offsets\":");
  put_list(t, offsets, 2);
  put_text(t, "}");
}

/* Pointers to the parts, by name. Fails if a name occurs twice. */
static int sorted_parts(const part ***out, const writing *w) {
  const part **sorted = mem_array(w->count, sizeof *sorted);
  if (!sorted)
    return PGEE_MEMORY;
  for (int64_t i = 0; i < w->count; i++)
    sorted[i] = &w->parts[i];
  qsort(sorted, (size_t)w->count, sizeof *sorted, by_name_of);
  *out = sorted;
  for (int64_t i = 1; i < w->count; i++)
    if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
      return fail(PGEE_ARGUMENT, "two tensors have the name '%s'", sorted[i]->name);
  return PGEE_OK;
}

static int put_metadata(text *t, const char *const *metadata, int64_t pairs) {
  safetensors_pair *sorted = mem_array(pairs, sizeof *sorted);
  if (!sorted)
    return PGEE_MEMORY;
  int status = PGEE_OK;
  for (int64_t i = 0; i < pairs && status == PGEE_OK; i++) {
    sorted[i] = (safetensors_pair){metadata[2 * i], metadata[2 * i + 1]};
    if (!sorted[i].key || !sorted[i].value)
      status = fail(PGEE_ARGUMENT, "the key or the value of pair %lld of the metadata is NULL", (long long)i + 1);
  }
  if (status == PGEE_OK)
    qsort(sorted, (size_t)pairs, sizeof *sorted, by_name);
  for (int64_t i = 1; i < pairs && status == PGEE_OK; i++)
    if (strcmp(sorted[i - 1].key, sorted[i].key) == 0)
      status = fail(PGEE_ARGUMENT, "two keys of the metadata are '%s'", sorted[i].key);
  put_text(t, "\"__metadata__\":{");
  for (int64_t i = 0; i < pairs && status == PGEE_OK; i++) {
    put_text(t, i ? "," : "");
    put_string(t, sorted[i].key);
    put_text(t, ":");
    put_string(t, sorted[i].value);
  }
  put_text(t, "}");
  mem_free(sorted);
  return status;
}

static int put_parts(text *t, const writing *w) {
  const part **sorted = NULL;
  int status = sorted_parts(&sorted, w);
  for (int64_t i = 0; i < w->count && status == PGEE_OK; i++) {
    put_text(t, ",");
    put_part(t, sorted[i]);
  }
  mem_free(sorted);
  return status;
}

/* With its length before it. */
static int writing_header(writing *w, const char *path, const char *const *metadata, int64_t pairs) {
  text *t = &w->header;
  put(t, "\0\0\0\0\0\0\0\0", 8);
  put_text(t, "{");
  TRY(put_metadata(t, metadata, pairs));
  TRY(put_parts(t, w));
  put_text(t, "}");
  while (t->status == PGEE_OK && t->bytes.count % SAFETENSORS_LINE != 0)
    put_text(t, " ");
  TRY(t->status);
  if (t->bytes.count - 8 > MAX_HEADER)
    return fail(PGEE_ARGUMENT, "'%s': names and metadata make a header of %lld bytes, expected at most %d", path,
                (long long)t->bytes.count - 8, MAX_HEADER);
  for (int i = 0; i < 8; i++)
    t->bytes.list[i] = (char)((uint64_t)(t->bytes.count - 8) >> 8 * i);
  const json j = {
      .path = path, .offset = 8, .start = t->bytes.list + 8, .at = t->bytes.list + 8, .end = t->bytes.list + t->bytes.count};
  return json_utf8(&j);
}

/* ---- Writing ------------------------------------------------------------------------------------------------------ */

/* A part's bytes, counted in its checksum. */
static int write_part(file *f, const part *p, uint32_t *sum) {
  static const char zeros[SAFETENSORS_LINE];
  if (!p->tensor) {
    *sum = checksum(0, zeros, p->bytes);
    return file_write(f, zeros, p->bytes);
  }
  const pgee_tensor *t = p->tensor;
  int element = pgee_dtype_bytes(t->dtype);
  int64_t rows = t->shape[0], width = tensor_width(t);
  if (t->stride == width) { /* one piece */
    width *= rows;
    rows = width > 0;
  }
  *sum = 0;
  for (int64_t i = 0; i < rows && width > 0; i++) {
    const char *row = (const char *)t->data + i * t->stride * element;
    *sum = checksum(*sum, row, width * element);
    TRY(file_write(f, row, width * element));
  }
  return PGEE_OK;
}

static int write_all(file *f, writing *w) {
  int64_t n = w->count - 1, words = safetensors_checksum_words(n);
  TRY(file_write(f, w->header.bytes.list, w->header.bytes.count));
  w->sums[0] = checksum(0, w->header.bytes.list, w->header.bytes.count);
  for (int64_t i = 0; i < n; i++)
    TRY(write_part(f, &w->parts[i], &w->sums[i + 1]));
  w->sums[words - 1] = checksum(0, w->sums, 4 * (words - 1));
  return file_write(f, w->sums, 4 * words);
}

static void writing_free(writing *w) {
  for (int64_t i = 0; i < w->count; i++)
    mem_free(w->parts[i].own);
  mem_free(w->parts);
  ARRAY_FREE(&w->header.bytes);
  mem_free(w->sums);
}

int pgee_safetensors_write(const char *path, const char *const *names, const pgee_tensor *const *tensors, int64_t count,
                           const char *const *metadata, int64_t pairs) {
  NEED(path, names, tensors, metadata);
  if (count < 0 || pairs < 0)
    return fail(PGEE_ARGUMENT, "%lld tensors and %lld pairs, expected 0 or more", (long long)count, (long long)pairs);
  writing w = {0};
  int status = writing_parts(&w, names, tensors, count);
  if (status == PGEE_OK)
    status = writing_header(&w, path, metadata, pairs);
  file *f = NULL;
  if (status == PGEE_OK)
    status = file_new(&f, path);
  if (status == PGEE_OK)
    status = write_all(f, &w);
  if (status == PGEE_OK)
    status = file_keep(f);
  file_free(f);
  writing_free(&w);
  return status;
}
