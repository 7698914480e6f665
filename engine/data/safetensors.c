/* safetensors.c: a strict reader of the safetensors format.
 *
 *   | header length, u64 little-endian | header, JSON, padded with spaces | data |
 *   header: { "__metadata__": { "key": "value", ... },
 *             "name": { "dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24] }, ... }
 *
 * Offsets count from the beginning of the data. The tensors fill the data without holes and overlaps, in any order. Everything is
 * checked when the file is opened. If the length of the header is odd, values lie at addresses that are no multiple of their size;
 * such tensors are copied.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/json.h"
#include "engine/base/map.h"
#include "engine/base/memory.h"
#include "safetensors.h"
#include "engine/base/status.h"
#include "tensor.h"

/* Every type of the format: its size, and ours or -1. */
static const safetensors_type types[] = {
    {"F32", 32, PGEE_F32}, {"F16", 16, PGEE_F16}, {"BF16", 16, PGEE_BF16}, {"I64", 64, PGEE_S64},  {"U8", 8, PGEE_U8},
    {"I8", 8, PGEE_S8},    {"I32", 32, PGEE_S32}, {"F64", 64, PGEE_F64},   {"BOOL", 8, PGEE_BOOL}, {"I16", 16, -1},
    {"U16", 16, -1},       {"U32", 32, -1},       {"U64", 64, -1},         {"C64", 64, -1},        {"F8_E5M2", 8, -1},
    {"F8_E4M3", 8, -1},    {"F8_E8M0", 8, -1},    {"F6_E2M3", 6, -1},      {"F6_E3M2", 6, -1},     {"F4", 4, -1},
};

/* ---- Items by name ------------------------------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b) {
  const char *const *const *x = a, *const *const *y = b;
  return strcmp(**x, **y);
}

int safetensors_by_begin(const void *a, const void *b) {
  const safetensors_entry *x = *(const safetensors_entry *const *)a, *y = *(const safetensors_entry *const *)b;
  if (x->begin != y->begin)
    return x->begin < y->begin ? -1 : 1;
  return x->end != y->end ? (x->end < y->end ? -1 : 1) : (x > y) - (x < y);
}

/* The items of an array in order: pointers to its items, which begin with their name. */
static int sort_items(void ***sorted, void *list, int64_t count, size_t item_bytes, int (*compare)(const void *, const void *)) {
  if (!*sorted && !(*sorted = mem_array(count, sizeof **sorted)))
    return PGEE_MEMORY;
  for (int64_t i = 0; i < count; i++)
    (*sorted)[i] = (char *)list + i * (int64_t)item_bytes;
  if (count > 0)
    qsort(*sorted, (size_t)count, sizeof **sorted, compare);
  return PGEE_OK;
}

static int sort_tensors(pgee_safetensors *f, int (*compare)(const void *, const void *)) {
  return sort_items(&f->sorted_tensors, f->tensors.list, f->tensors.count, sizeof *f->tensors.list, compare);
}

static int sort_metadata(pgee_safetensors *f) {
  return sort_items(&f->sorted_metadata, f->metadata.list, f->metadata.count, sizeof *f->metadata.list, by_name);
}

static void *find(void *const *sorted, int64_t count, const char *name) {
  const char **key = &name;
  void **found = count ? bsearch(&key, sorted, (size_t)count, sizeof *sorted, by_name) : NULL;
  return found ? *found : NULL;
}

/* The first name that occurs twice in items sorted by name, or NULL. */
static const char *find_duplicate(void *const *sorted, int64_t count) {
  for (int64_t i = 1; i < count; i++)
    if (by_name(&sorted[i - 1], &sorted[i]) == 0)
      return *(const char **)sorted[i];
  return NULL;
}

/* ---- The header --------------------------------------------------------------------------------------------------- */

static int read_type(json *j, safetensors_entry *e) {
  const char *name;
  TRY(json_string(j, &name));
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    if (strcmp(types[i].name, name) == 0)
      e->type = &types[i];
  return e->type ? PGEE_OK : json_fail(j, "tensor '%.200s' has the unknown dtype '%.40s'", e->name, name);
}

static int read_shape(json *j, safetensors_entry *e) {
  int more = 0, overflow = 0, empty = 0;
  TRY(json_take(j, '['));
  e->count = 1;
  for (e->ndim = 0;; e->ndim++) {
    int64_t n;
    TRY(json_more(j, ']', e->ndim, &more));
    if (!more)
      break;
    TRY(json_integer(j, &n));
    if (e->ndim < PGEE_MAX_DIMS)
      e->shape[e->ndim] = n;
    empty |= n == 0;
    /* A zero must not hide that the others are beyond what can be counted. */
    overflow |= __builtin_mul_overflow(e->count, n ? n : 1, &e->count);
  }
  if (overflow)
    return json_fail(j, "the shape of tensor '%.200s' has more than 2^63 - 1 elements", e->name);
  if (empty)
    e->count = 0;
  return PGEE_OK;
}

static int read_offsets(json *j, safetensors_entry *e) {
  TRY(json_take(j, '['));
  TRY(json_integer(j, &e->begin));
  TRY(json_take(j, ','));
  TRY(json_integer(j, &e->end));
  return json_take(j, ']');
}

static int read_tensor(json *j, safetensors_entry *e) {
  static const char *const fields[] = {"dtype", "shape", "data_offsets"};
  static int (*const read[])(json *, safetensors_entry *) = {read_type, read_shape, read_offsets};
  int seen[3] = {0}, more = 0;
  if (json_peek(j) != '{')
    return json_fail(j, "tensor '%.200s' is not an object of dtype, shape and data_offsets", e->name);
  j->at++;
  for (int64_t count = 0;; count++) {
    const char *field;
    int f = 0;
    TRY(json_more(j, '}', count, &more));
    if (!more)
      break;
    TRY(json_string(j, &field));
    while (f < 3 && strcmp(fields[f], field) != 0)
      f++;
    if (f == 3)
      return json_fail(j, "tensor '%.200s' has the unknown field '%.40s'", e->name, field);
    if (seen[f]++)
      return json_fail(j, "tensor '%.200s' has the field '%s' twice", e->name, field);
    TRY(json_take(j, ':'));
    TRY(read[f](j, e));
  }
  for (int f = 0; f < 3; f++)
    if (!seen[f])
      return json_fail(j, "tensor '%.200s' has no field '%s'", e->name, fields[f]);
  return PGEE_OK;
}

static int read_metadata(json *j, pgee_safetensors *f) {
  int more = 0;
  if (json_peek(j) != '{')
    return json_fail(j, "__metadata__ is not an object of strings");
  j->at++;
  for (int64_t count = 0;; count++) {
    TRY(json_more(j, '}', count, &more));
    if (!more)
      return PGEE_OK;
    TRY(ARRAY_PUSH(&f->metadata, (safetensors_pair){0}));
    safetensors_pair *p = &f->metadata.list[count];
    TRY(json_string(j, &p->key));
    TRY(json_take(j, ':'));
    if (json_peek(j) != '"')
      return json_fail(j, "the value of '%.200s' in __metadata__ is not a string", p->key);
    TRY(json_string(j, &p->value));
  }
}

static int read_header(json *j, pgee_safetensors *f) {
  int more = 0, metadata = 0;
  if (*j->at != '{')
    return json_fail(j, "the header does not begin with '{'");
  j->at++;
  for (int64_t count = 0;; count++) {
    const char *name;
    TRY(json_more(j, '}', count, &more));
    if (!more)
      break;
    TRY(json_string(j, &name));
    TRY(json_take(j, ':'));
    if (strcmp(name, "__metadata__") == 0) {
      if (metadata++)
        return json_fail(j, "__metadata__ occurs twice");
      TRY(read_metadata(j, f));
    } else {
      TRY(ARRAY_PUSH(&f->tensors, (safetensors_entry){.name = name}));
      TRY(read_tensor(j, &f->tensors.list[f->tensors.count - 1]));
    }
  }
  for (; j->at < j->end; j->at++)
    if (*j->at != ' ')
      return json_fail(j, "after its closing '}' the header may only be padded with spaces");
  return PGEE_OK;
}

/* ---- Checks over the whole ---------------------------------------------------------------------------------------- */

static int check_names(pgee_safetensors *f) {
  TRY(sort_metadata(f));
  TRY(sort_tensors(f, by_name));
  const char *name = find_duplicate(f->sorted_metadata, f->metadata.count);
  if (name)
    return fail(PGEE_FORMAT, "'%s': the key '%s' occurs twice in __metadata__", f->file->path, name);
  if ((name = find_duplicate(f->sorted_tensors, f->tensors.count)))
    return fail(PGEE_FORMAT, "'%s': tensor '%s' occurs twice", f->file->path, name);
  return PGEE_OK;
}

static int check_extent(const pgee_safetensors *f, const safetensors_entry *e) {
  const char *path = f->file->path;
  long long begin = e->begin, end = e->end;
  int64_t bits;
  if (end < begin)
    return fail(PGEE_FORMAT, "'%s': tensor '%s' ends at %lld, before it begins at %lld", path, e->name, end, begin);
  if (end > f->data_bytes)
    return fail(PGEE_FORMAT, "'%s': tensor '%s' ends at %lld, past the %lld bytes of data: the file is cut off or damaged", path,
                e->name, end, (long long)f->data_bytes);
  if (__builtin_mul_overflow(e->count, e->type->bits, &bits))
    return fail(PGEE_FORMAT, "'%s': tensor '%s': %lld elements of %s are more than can be counted", path, e->name,
                (long long)e->count, e->type->name);
  if (bits % 8 != 0)
    return fail(PGEE_FORMAT, "'%s': tensor '%s': %lld elements of %s do not fill whole bytes", path, e->name, (long long)e->count,
                e->type->name);
  if (bits / 8 != end - begin)
    return fail(PGEE_FORMAT, "'%s': tensor '%s' has %lld bytes (%lld to %lld), but its shape and dtype %s need %lld", path,
                e->name, end - begin, begin, end, e->type->name, (long long)(bits / 8));
  return PGEE_OK;
}

/* Do the tensors, in order, lie end to end from the first byte to the last? Leaves them sorted by offset. */
static int check_tiling(pgee_safetensors *f) {
  const char *path = f->file->path, *before = NULL;
  int64_t at = 0;
  TRY(sort_tensors(f, safetensors_by_begin));
  for (int64_t i = 0; i < f->tensors.count; i++) {
    const safetensors_entry *e = f->sorted_tensors[i];
    if (e->begin < at)
      return fail(PGEE_FORMAT, "'%s': tensor '%s' begins at %lld, inside tensor '%s', which ends at %lld", path, e->name,
                  (long long)e->begin, before, (long long)at);
    if (e->begin > at)
      return fail(PGEE_FORMAT, "'%s': bytes %lld to %lld, before tensor '%s', belong to no tensor", path, (long long)at,
                  (long long)e->begin, e->name);
    at = e->end;
    before = e->name;
  }
  if (at != f->data_bytes)
    return fail(PGEE_FORMAT, "'%s': the last %lld of %lld bytes of data belong to no tensor", path,
                (long long)(f->data_bytes - at), (long long)f->data_bytes);
  return PGEE_OK;
}

static int check_data(pgee_safetensors *f) {
  for (int64_t i = 0; i < f->tensors.count; i++)
    TRY(check_extent(f, &f->tensors.list[i]));
  return check_tiling(f);
}

/* ---- The public functions ----------------------------------------------------------------------------------------- */

/* Finds the header. */
static int header_bytes(const map *file, int64_t *bytes) {
  uint64_t n = 0;
  if (file->bytes < 8)
    return fail(PGEE_FORMAT, "'%s' has %lld bytes, fewer than the 8 of the header's length", file->path, (long long)file->bytes);
  for (int i = 7; i >= 0; i--)
    n = n << 8 | (unsigned char)file->data[i];
  if (n > MAX_HEADER)
    return fail(PGEE_FORMAT, "'%s': a header of %llu bytes, expected at most %d: this is not a safetensors file", file->path,
                (unsigned long long)n, MAX_HEADER);
  if (n == 0)
    return fail(PGEE_FORMAT, "'%s': the header's length is 0", file->path);
  if ((int64_t)n > file->bytes - 8)
    return fail(PGEE_FORMAT, "'%s': a header of %llu bytes in a file of %lld: the file is cut off or damaged", file->path,
                (unsigned long long)n, (long long)file->bytes);
  *bytes = (int64_t)n;
  return PGEE_OK;
}

static int read_file(pgee_safetensors *f, const char *path, int copy) {
  int64_t header = 0;
  TRY(map_open(&f->file, path, copy));
  TRY(header_bytes(f->file, &header));
  const char *text = f->file->data + 8;
  f->data = text + header;
  f->data_bytes = f->file->bytes - 8 - header;
  f->strings = mem_new(header);
  if (!f->strings)
    return PGEE_MEMORY;
  json j = {.path = path, .offset = 8, .start = text, .at = text, .end = text + header, .strings = f->strings};
  TRY(json_utf8(&j));
  return read_header(&j, f);
}

static int open_file(pgee_safetensors **out, const char *path, int copy) {
  pgee_safetensors *f = mem_new(sizeof *f);
  if (!f)
    return PGEE_MEMORY;
  int status = read_file(f, path, copy);
  if (status == PGEE_OK)
    status = check_names(f);
  if (status == PGEE_OK)
    status = check_data(f);
  if (status == PGEE_OK)
    status = sort_tensors(f, by_name);
  if (status == PGEE_OK)
    *out = f;
  else
    pgee_safetensors_free(f);
  return status;
}

int pgee_safetensors_open(pgee_safetensors **out, const char *path) {
  NEED(out, path);
  return open_file(out, path, 0);
}

int pgee_safetensors_read(pgee_safetensors **out, const char *path) {
  NEED(out, path);
  return open_file(out, path, 1);
}

void pgee_safetensors_free(pgee_safetensors *f) {
  if (!f)
    return;
  ARRAY_FREE(&f->tensors);
  ARRAY_FREE(&f->metadata);
  mem_free(f->sorted_tensors);
  mem_free(f->sorted_metadata);
  mem_free(f->strings);
  map_free(f->file);
  mem_free(f);
}

int64_t pgee_safetensors_bytes(const pgee_safetensors *f) { return f ? f->file->bytes : 0; }

int64_t pgee_safetensors_count(const pgee_safetensors *f) { return f ? f->tensors.count : 0; }

const char *pgee_safetensors_name(const pgee_safetensors *f, int64_t i) {
  return f && i >= 0 && i < f->tensors.count ? f->tensors.list[i].name : NULL;
}

int pgee_safetensors_tensor(pgee_tensor **out, const pgee_safetensors *f, const char *name) {
  NEED(out, f, name);
  const safetensors_entry *e = find(f->sorted_tensors, f->tensors.count, name);
  if (!e)
    return fail(PGEE_ARGUMENT, "'%s' has no tensor '%s'", f->file->path, name);
  if (e->type->dtype < 0)
    return fail(PGEE_UNSUPPORTED, "'%s': tensor '%s' is of type %s, which is not supported", f->file->path, name, e->type->name);
  if (e->ndim > PGEE_MAX_DIMS)
    return fail(PGEE_UNSUPPORTED, "'%s': tensor '%s' has %d dimensions, at most %d are supported", f->file->path, name, e->ndim,
                PGEE_MAX_DIMS);
  static const int64_t one[] = {1}; /* a single number is a vector of one */
  const int64_t *shape = e->ndim ? e->shape : one;
  int ndim = e->ndim ? e->ndim : 1, dtype = e->type->dtype;
  char *data = (char *)f->data + e->begin;
  if ((uintptr_t)data % (uintptr_t)pgee_dtype_bytes(dtype) == 0)
    return tensor_over(out, dtype, ndim, shape, data, f->file);
  TRY(pgee_tensor_new(out, dtype, ndim, shape)); /* more than one byte each, so dense */
  if (e->end > e->begin)
    memcpy((*out)->data, data, (size_t)(e->end - e->begin));
  return PGEE_OK;
}

const char *pgee_safetensors_metadata(const pgee_safetensors *f, const char *key) {
  const safetensors_pair *p = f && key ? find(f->sorted_metadata, f->metadata.count, key) : NULL;
  return p ? p->value : NULL;
}
