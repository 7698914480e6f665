/* tensor.c: an array of one type with up to four dimensions, row-major.
 *
 * Rows (index of the first dimension) lie `stride` elements apart; the elements inside a row are dense. The data is a block of
 * the tensor's own, aligned to 64 bytes, or belongs to a mapped file or another tensor, which the tensor then holds; it is
 * aligned to the size of its type. */
#include "tensor.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/map.h"
#include "engine/base/memory.h"
#include "engine/base/status.h"

static const struct {
  const char *name;
  int bytes;
} dtypes[PGEE_DTYPES] = {
    [PGEE_F32] = {"F32", 4}, [PGEE_F16] = {"F16", 2}, [PGEE_BF16] = {"BF16", 2}, [PGEE_U8] = {"U8", 1},     [PGEE_S8] = {"I8", 1},
    [PGEE_S32] = {"I32", 4}, [PGEE_S64] = {"I64", 8}, [PGEE_F64] = {"F64", 8},   [PGEE_BOOL] = {"BOOL", 1},
};

const char *pgee_dtype_name(int dtype) { return dtype >= 0 && dtype < PGEE_DTYPES ? dtypes[dtype].name : NULL; }
int pgee_dtype_bytes(int dtype) { return dtype >= 0 && dtype < PGEE_DTYPES ? dtypes[dtype].bytes : 0; }

/* ---- Shapes ------------------------------------------------------------------------------------------------------- */

tensor_shape_text tensor_shape_print(int ndim, const int64_t *shape) {
  tensor_shape_text s = {""};
  int at = 0;
  for (int i = 0; i < ndim; i++)
    at += snprintf(s.text + at, sizeof s.text - (size_t)at, "[%lld]", (long long)shape[i]);
  return s;
}

/* Checks type and shape and fills in all fields of t but its data. The stride is a multiple of `pad`. */
static int tensor_describe(pgee_tensor *t, int dtype, int ndim, const int64_t *shape, int64_t pad) {
  if (!pgee_dtype_name(dtype))
    return fail(PGEE_ARGUMENT, "%d is no tensor type", dtype);
  if (ndim < 1 || ndim > PGEE_MAX_DIMS)
    return fail(PGEE_ARGUMENT, "a tensor of %d dimensions, expected 1 to %d", ndim, PGEE_MAX_DIMS);
  int64_t width = 1, bytes;
  int overflow = 0, empty = 0;
  for (int i = 0; i < ndim; i++) {
    if (shape[i] < 0)
      return fail(PGEE_ARGUMENT, "dimension %d of shape %s is negative", i + 1, tensor_shape_print(ndim, shape).text);
    t->shape[i] = shape[i];
    if (i == 0)
      continue;
    /* A zero must not hide that the others are beyond what can be counted. */
    empty |= shape[i] == 0;
    overflow |= __builtin_mul_overflow(width, shape[i] ? shape[i] : 1, &width);
  }
  overflow |= __builtin_add_overflow(width, pad - 1, &width);
  width -= width % pad;
  overflow |= __builtin_mul_overflow(width, shape[0] ? shape[0] : 1, &bytes);
  overflow |= __builtin_mul_overflow(bytes, dtypes[dtype].bytes, &bytes);
  if (overflow)
    return fail(PGEE_ARGUMENT, "a tensor %s %s is too large", dtypes[dtype].name, tensor_shape_print(ndim, shape).text);
  t->stride = empty ? 0 : width;
  t->dtype = dtype;
  t->ndim = ndim;
  t->rows = PGEE_FIXED;
  t->refs = 1;
  return PGEE_OK;
}

int64_t tensor_width(const pgee_tensor *t) {
  int64_t n = 1;
  for (int i = 1; i < t->ndim; i++)
    n *= t->shape[i];
  return n;
}

int64_t tensor_count(const pgee_tensor *t) { return t->shape[0] * tensor_width(t); }

/* ---- Making and freeing ------------------------------------------------------------------------------------------- */

/* Makes a handle with the fields of `described`. */
static int tensor_handle(pgee_tensor **out, const pgee_tensor *described) {
  pgee_tensor *t = mem_new(sizeof *t);
  if (!t)
    return PGEE_MEMORY;
  *t = *described;
  *out = t;
  return PGEE_OK;
}

static int tensor_make(pgee_tensor **out, int dtype, int ndim, const int64_t *shape, int huge) {
  pgee_tensor t = {0};
  TRY(tensor_describe(&t, dtype, ndim, shape, dtype == PGEE_U8 && ndim == 2 ? 64 : 1));
  t.data = huge ? mem_huge(t.shape[0] * t.stride * dtypes[dtype].bytes) : mem_array(t.shape[0] * t.stride, dtypes[dtype].bytes);
  if (!t.data)
    return PGEE_MEMORY;
  t.owned = 1;
  int status = tensor_handle(out, &t);
  if (status != PGEE_OK)
    mem_free(t.data);
  return status;
}

int pgee_tensor_new(pgee_tensor **out, int dtype, int ndim, const int64_t *shape) {
  NEED(out, shape);
  return tensor_make(out, dtype, ndim, shape, 0);
}

int pgee_tensor_huge(pgee_tensor **out, const pgee_tensor *base) {
  NEED(out, base);
  pgee_tensor *t;
  TRY(tensor_expect_memory(base, "base"));
  TRY(tensor_make(&t, base->dtype, base->ndim, base->shape, 1));
  int64_t item = dtypes[t->dtype].bytes, width = tensor_width(t) * item;
  for (int64_t i = 0; i < t->shape[0]; i++)
    memcpy((char *)t->data + i * t->stride * item, (const char *)base->data + i * base->stride * item, (size_t)width);
  *out = t;
  return PGEE_OK;
}

int tensor_over(pgee_tensor **out, int dtype, int ndim, const int64_t *shape, void *data, map *file) {
  pgee_tensor t = {0};
  TRY(tensor_describe(&t, dtype, ndim, shape, 1));
  t.data = data;
  t.file = file;
  TRY(tensor_handle(out, &t));
  map_hold(file);
  return PGEE_OK;
}

/* A view of `base` from row `first` on, with the shape and the stride of t. */
static int tensor_view(pgee_tensor **out, pgee_tensor t, const pgee_tensor *base, int64_t first) {
  if (!base->data)
    return fail(PGEE_ARGUMENT, "a plan's buffer has no memory of its own, so it has no views");
  t.refs = 1;
  t.data = (char *)base->data + first * base->stride * dtypes[base->dtype].bytes;
  t.owned = 0;
  t.file = NULL;
  t.base = (pgee_tensor *)(base->base ? base->base : base);
  TRY(tensor_handle(out, &t));
  tensor_hold(t.base);
  return PGEE_OK;
}

int pgee_tensor_rows(pgee_tensor **out, const pgee_tensor *base, int64_t begin, int64_t end) {
  NEED(out, base);
  if (begin < 0 || begin > end || end > base->shape[0])
    return fail(PGEE_ARGUMENT, "rows %lld to %lld of a tensor of %lld rows", (long long)begin, (long long)end,
                (long long)base->shape[0]);
  pgee_tensor t = *base;
  t.shape[0] = end - begin;
  return tensor_view(out, t, base, begin);
}

int pgee_tensor_row(pgee_tensor **out, const pgee_tensor *base, int64_t i) {
  NEED(out, base);
  if (base->ndim < 2)
    return fail(PGEE_ARGUMENT, "the tensor is a vector, expected 2 to 4 dimensions to take a row of");
  if (i < 0 || i >= base->shape[0])
    return fail(PGEE_ARGUMENT, "row %lld of a tensor of %lld rows", (long long)i, (long long)base->shape[0]);
  pgee_tensor t = *base;
  t.ndim--;
  memmove(t.shape, t.shape + 1, (size_t)t.ndim * sizeof *t.shape);
  t.stride = tensor_width(&t);
  return tensor_view(out, t, base, i);
}

pgee_tensor *tensor_hold(const pgee_tensor *t) {
  pgee_tensor *held = (pgee_tensor *)t;
  if (held)
    atomic_fetch_add(&held->refs, 1);
  return held;
}

void pgee_tensor_free(pgee_tensor *t) {
  if (!t || atomic_fetch_sub(&t->refs, 1) > 1)
    return;
  if (t->owned)
    mem_free(t->data);
  map_free(t->file);
  pgee_tensor_free(t->base);
  mem_free(t);
}

/* ---- Reading ------------------------------------------------------------------------------------------------------ */

int pgee_tensor_dtype(const pgee_tensor *t) { return t ? t->dtype : -1; }
int pgee_tensor_ndim(const pgee_tensor *t) { return t ? t->ndim : 0; }
int64_t pgee_tensor_dim(const pgee_tensor *t, int i) { return t && i >= 0 && i < t->ndim ? t->shape[i] : 0; }
int64_t pgee_tensor_stride(const pgee_tensor *t) { return t ? t->stride : 0; }
void *pgee_tensor_data(const pgee_tensor *t) { return t ? t->data : NULL; }
int pgee_tensor_writable(const pgee_tensor *t) { return t && !t->file && !(t->base && t->base->file); }

/* ---- Checks of arguments ------------------------------------------------------------------------------------------ */

/* "F32 [rows][64]": what was expected, where some of it does not matter. */
static tensor_shape_text expected_print(int dtype, int ndim, int64_t rows, int64_t width) {
  tensor_shape_text s;
  char count[24] = "[rows]", wide[24] = "";
  if (rows >= 0)
    snprintf(count, sizeof count, "[%lld]", (long long)rows);
  if (width >= 0)
    snprintf(wide, sizeof wide, "[%lld]", (long long)width);
  else if (ndim == 2)
    snprintf(wide, sizeof wide, "[any]");
  if (ndim < 0 && rows < 0 && width < 0)
    snprintf(s.text, sizeof s.text, "%s", dtype < 0 ? "a tensor" : dtypes[dtype].name);
  else if (ndim > 2)
    snprintf(s.text, sizeof s.text, "%s of %d dimensions", dtype < 0 ? "a tensor" : dtypes[dtype].name, ndim);
  else
    snprintf(s.text, sizeof s.text, "%s %s%s", dtype < 0 ? "a tensor" : dtypes[dtype].name, count, ndim == 1 ? "" : wide);
  return s;
}

int tensor_expect(const pgee_tensor *t, const char *what, int dtype, int ndim, int64_t rows, int64_t width) {
  tensor_shape_text expected = expected_print(dtype, ndim, rows, width);
  if (!t)
    return fail(PGEE_ARGUMENT, "%s is missing, expected %s", what, expected.text);
  int buffer = t->rows != PGEE_FIXED; /* of a plan: it has no number of rows yet */
  if ((dtype < 0 || t->dtype == dtype) && (ndim < 0 || t->ndim == ndim) && (rows < 0 || buffer || t->shape[0] == rows) &&
      (width < 0 || tensor_width(t) == width))
    return PGEE_OK;
  return fail(PGEE_ARGUMENT, "%s is %s %s%s, expected %s", what, dtypes[t->dtype].name,
              !buffer                     ? ""
              : t->rows == PGEE_TOKENS    ? "[T]"
              : t->rows == PGEE_SEQUENCES ? "[B]"
                                          : "[R]",
              tensor_shape_print(t->ndim - buffer, t->shape + buffer).text, expected.text);
}

int tensor_expect_memory(const pgee_tensor *t, const char *what) {
  return t->data ? PGEE_OK : fail(PGEE_ARGUMENT, "%s is a plan's buffer, which has no memory of its own", what);
}

int tensor_expect_output(const pgee_tensor *t, const char *what, int dtype, int ndim, int64_t rows, int64_t width) {
  TRY(tensor_expect(t, what, dtype, ndim, rows, width));
  return pgee_tensor_writable(t) ? PGEE_OK : fail(PGEE_ARGUMENT, "%s is part of a file, which cannot be written", what);
}
