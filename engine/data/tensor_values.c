/* tensor_values.c: reads the values of tensors: converts them to floats and doubles, finds NaN and infinity, compares. */
#include <math.h>
#include <string.h>

#include "engine/base/status.h"
#include "tensor.h"

static int same_shape(const pgee_tensor *a, const pgee_tensor *b) {
  return a->ndim == b->ndim && memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

static const char *row_at(const pgee_tensor *t, int64_t i) {
  return (const char *)t->data + i * t->stride * pgee_dtype_bytes(t->dtype);
}

/* ---- Converting ---------------------------------------------------------------------------------------------------- */

/* IEEE half precision to single, exactly; a NaN keeps its payload and becomes quiet. */
static uint32_t widen_f16(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
  if (exponent == 31)
    return sign | 0x7f800000 | (fraction ? 0x400000 | fraction << 13 : 0);
  if (exponent)
    return sign | (exponent + 112) << 23 | fraction << 13;
  if (!fraction)
    return sign;
  /* A denormal: its highest bit becomes the implicit one of a normal float. */
  int shift = __builtin_clz(fraction) - 21;
  return sign | (uint32_t)(113 - shift) << 23 | (fraction << shift & 0x3ff) << 13;
}

static uint32_t widen_bf16(uint16_t b) {
  uint32_t bits = (uint32_t)b << 16;
  return (bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : bits;
}

static int64_t load_s64(const char *p) {
  int64_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

static int32_t load_s32(const char *p) {
  int32_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

static double load_f64(const char *p) {
  double v;
  memcpy(&v, p, sizeof v);
  return v;
}

static uint16_t load_u16(const char *p) {
  uint16_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

/* n dense values at p, of any type and at any address, as floats. */
static void widen(float *out, const char *p, int dtype, int64_t n) {
  uint32_t bits;
  switch (dtype) {
  case PGEE_F32:
    if (n > 0)
      memcpy(out, p, (size_t)n * sizeof *out);
    break;
  case PGEE_F16:
    for (int64_t i = 0; i < n; i++) {
      bits = widen_f16(load_u16(p + 2 * i));
      memcpy(out + i, &bits, sizeof bits);
    }
    break;
  case PGEE_BF16:
    for (int64_t i = 0; i < n; i++) {
      bits = widen_bf16(load_u16(p + 2 * i));
      memcpy(out + i, &bits, sizeof bits);
    }
    break;
  case PGEE_F64:
    for (int64_t i = 0; i < n; i++)
      out[i] = (float)load_f64(p + 8 * i);
    break;
  case PGEE_S64:
    for (int64_t i = 0; i < n; i++)
      out[i] = (float)load_s64(p + 8 * i);
    break;
  case PGEE_S32:
    for (int64_t i = 0; i < n; i++)
      out[i] = (float)load_s32(p + 4 * i);
    break;
  case PGEE_S8:
    for (int64_t i = 0; i < n; i++)
      out[i] = (float)(int8_t)p[i];
    break;
  default: /* PGEE_U8, PGEE_BOOL */
    for (int64_t i = 0; i < n; i++)
      out[i] = (float)(uint8_t)p[i];
  }
}

void tensor_row_f32(float *out, const pgee_tensor *t, int64_t i) { widen(out, row_at(t, i), t->dtype, tensor_width(t)); }

int pgee_tensor_f32(pgee_tensor **out, const pgee_tensor *base) {
  NEED(out, base);
  TRY(tensor_expect_memory(base, "base"));
  pgee_tensor *t;
  TRY(pgee_tensor_new(&t, PGEE_F32, base->ndim, base->shape));
  for (int64_t i = 0; i < base->shape[0]; i++)
    tensor_row_f32((float *)t->data + i * t->stride, base, i);
  *out = t;
  return PGEE_OK;
}

enum { BLOCK = 256 }; /* elements that are looked at together, so that the compiler can vectorize */

int pgee_numbers(double *to, const void *from, int dtype, int64_t count) {
  NEED(to, from);
  if (dtype != PGEE_F32 && dtype != PGEE_F16 && dtype != PGEE_BF16 && dtype != PGEE_F64)
    return fail(PGEE_ARGUMENT, "numbers: the type is %d, expected F32, F16, BF16 or F64", dtype);
  if (count < 0)
    return fail(PGEE_ARGUMENT, "numbers: the count is %lld, expected 0 or more", (long long)count);
  const int64_t bytes = pgee_dtype_bytes(dtype);
  for (int64_t first = 0; first < count; first += BLOCK) {
    const char *p = (const char *)from + first * bytes;
    int64_t m = count - first < BLOCK ? count - first : BLOCK;
    float block[BLOCK];
    if (dtype != PGEE_F64)
      widen(block, p, dtype, m);
    for (int64_t i = 0; i < m; i++) {
      double v = dtype == PGEE_F64 ? load_f64(p + 8 * i) : (double)block[i];
      to[first + i] = v == v ? v : (double)NAN;
    }
  }
  return PGEE_OK;
}

/* ---- Looking for values and comparing ------------------------------------------------------------------------------ */

/* The first of n dense values at p whose exponent bits are all ones, or -1. By blocks, so that the compiler can vectorize. */
static int64_t scan_f32(const char *p, int64_t n) {
  for (int64_t first = 0; first < n; first += BLOCK) {
    uint32_t block[BLOCK], found = 0;
    int64_t m = n - first < BLOCK ? n - first : BLOCK;
    memcpy(block, p + first * 4, (size_t)m * 4);
    for (int64_t i = 0; i < m; i++)
      found |= (block[i] & 0x7f800000) == 0x7f800000;
    for (int64_t i = 0; found && i < m; i++)
      if ((block[i] & 0x7f800000) == 0x7f800000)
        return first + i;
  }
  return -1;
}

static int64_t scan_u16(const char *p, int64_t n, uint16_t exponent) {
  for (int64_t first = 0; first < n; first += BLOCK) {
    uint16_t block[BLOCK], found = 0;
    int64_t m = n - first < BLOCK ? n - first : BLOCK;
    memcpy(block, p + first * 2, (size_t)m * 2);
    for (int64_t i = 0; i < m; i++)
      found |= (block[i] & exponent) == exponent;
    for (int64_t i = 0; found && i < m; i++)
      if ((block[i] & exponent) == exponent)
        return first + i;
  }
  return -1;
}

int64_t pgee_tensor_nonfinite(const pgee_tensor *t) {
  if (!t || !t->data)
    return -1;
  int64_t width = tensor_width(t), rows = t->shape[0];
  if (t->stride == width) { /* one piece, however many rows */
    width *= rows;
    rows = width > 0;
  }
  for (int64_t i = 0; i < rows; i++) {
    const char *p = row_at(t, i);
    int64_t found = t->dtype == PGEE_F32    ? scan_f32(p, width)
                    : t->dtype == PGEE_F16  ? scan_u16(p, width, 0x7c00)
                    : t->dtype == PGEE_BF16 ? scan_u16(p, width, 0x7f80)
                                            : -1;
    if (found >= 0)
      return i * width + found;
  }
  return -1;
}

int pgee_tensor_equal(const pgee_tensor *a, const pgee_tensor *b) {
  if (!a || !b || a->dtype != b->dtype || !same_shape(a, b) || !a->data || !b->data)
    return 0;
  size_t bytes = (size_t)(tensor_width(a) * pgee_dtype_bytes(a->dtype));
  for (int64_t i = 0; bytes > 0 && i < a->shape[0]; i++)
    if (memcmp(row_at(a, i), row_at(b, i), bytes) != 0)
      return 0;
  return 1;
}

int pgee_sqnr(double *db, const pgee_tensor *reference, const pgee_tensor *test) {
  NEED(db, reference, test);
  TRY(tensor_expect(reference, "reference", PGEE_F32, -1, -1, -1));
  TRY(tensor_expect(test, "test", PGEE_F32, -1, -1, -1));
  TRY(tensor_expect_memory(reference, "reference"));
  TRY(tensor_expect_memory(test, "test"));
  if (!same_shape(reference, test))
    return fail(PGEE_ARGUMENT, "test is %s, expected reference's shape %s", tensor_shape_print(test->ndim, test->shape).text,
                tensor_shape_print(reference->ndim, reference->shape).text);
  double signal = 0, noise = 0;
  for (int64_t i = 0; i < reference->shape[0]; i++) {
    const char *p = row_at(reference, i), *q = row_at(test, i);
    for (int64_t j = 0; j < tensor_width(reference); j++) {
      float r, t;
      memcpy(&r, p + 4 * j, 4);
      memcpy(&t, q + 4 * j, 4);
      double error = (double)r - (double)t;
      signal += (double)r * (double)r;
      noise += error * error;
    }
  }
  *db = noise == 0 ? (double)INFINITY : signal == 0 ? (double)NAN : 10 * log10(signal / noise);
  return PGEE_OK;
}
