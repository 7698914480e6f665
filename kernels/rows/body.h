/* body.h: the row operators and tile epilogues over sixteen lanes; included by ref.c, avx2.c and avx512vnni.c after their v16.
 *
 * kernels/ARITHMETIC.md writes down the arithmetic. Lanes past the row's end hold what cannot change the result.
 */
#include <float.h>
#include <math.h>

#include "functions.h"
#include "rows.h"

/* ---- Quantizing --------------------------------------------------------------------------------------------------- */

/* x[k] * mul[k]; mul may be NULL. */
INLINE v16 load_scaled(const float *x, const float *mul, int64_t k, int n) {
  v16 v = vload(x + k, n);
  return mul ? vmul(v, vload(mul + k, n)) : v;
}

INLINE void row_range(float *range, const float *x, const float *mul, int64_t width) {
  v16 lo = vsplat(0), hi = vsplat(0);
  LANES(width, v16 v = load_scaled(x, mul, k, n); lo = vmin(v, lo); hi = vmax(v, hi));
  range[0] = vleast(lo);
  range[1] = vgreatest(hi);
}

typedef struct levels {
  float scale, inverse;
  int32_t zero, lo, hi;
} levels;

INLINE int is_normal(float x) { return x >= FLT_MIN && x <= FLT_MAX; }

INLINE levels range_levels(const float *range, int symmetric) {
  float lo = range[0], hi = range[1], most = hi > -lo ? hi : -lo;
  levels l = {.scale = symmetric ? most / 127.0f : (hi - lo) / 255.0f, .zero = 128, .lo = -127, .hi = 127};
  l.inverse = 1.0f / l.scale;
  if (!is_normal(l.scale) || !is_normal(l.inverse))
    l.scale = l.inverse = 1.0f;
  if (!symmetric) {
    float z = -lo * l.inverse;
    l.zero = z < 255.0f ? (int32_t)((z + 0x1.8p23f) - 0x1.8p23f) : 255;
    l.lo = -l.zero;
    l.hi = 255 - l.zero;
  }
  return l;
}

INLINE void quantize_static(const quantizer *a, const float *x, int64_t width, int64_t t) {
  v16 lo = vsplat((float)a->lo), hi = vsplat((float)a->hi);
  v16i zero = visplat(a->zero);
  const float *mul = a->mul, *add = a->add;
  uint8_t *q = a->q + t * a->ldq;
  LANES(width, store_quantized(q + k, scaled(vload(x + k, n), mul, add, k, n), lo, hi, zero, n));
}

INLINE void quantize_dynamic(const quantizer *a, const float *x, int64_t width, int64_t t, const float *range) {
  levels l = range_levels(range, a->symmetric);
  v16 lo = vsplat((float)l.lo), hi = vsplat((float)l.hi), inverse = vsplat(l.inverse);
  v16i zero = visplat(l.zero);
  const float *mul = a->mul;
  uint8_t *q = a->q + t * a->ldq;
  LANES(width, store_quantized(q + k, vmul(load_scaled(x, mul, k, n), inverse), lo, hi, zero, n));
  a->row_scale[t] = l.scale;
  a->row_zero[t] = l.zero;
}

/* Rows are taken a few at a time, pass by pass: what one row's pass waits for, the end of a chain of additions or comparisons,
 * passes while the others' run. */
enum { ROWS_AT_ONCE = 4 };

/* Rows t to t + count, at most ROWS_AT_ONCE; x is row t. */
INLINE void quantize_rows(const quantizer *a, const float *x, int64_t ldx, int64_t width, int64_t t, int64_t count) {
  float own[ROWS_AT_ONCE][2];
  for (int64_t i = 0; i < count && a->mode == QUANTIZE_DYNAMIC && !a->ranges; i++)
    row_range(own[i], x + i * ldx, a->mul, width);
  for (int64_t i = 0; i < count; i++)
    if (a->mode == QUANTIZE_STATIC)
      quantize_static(a, x + i * ldx, width, t + i);
    else
      quantize_dynamic(a, x + i * ldx, width, t + i, a->ranges ? a->ranges + 2 * (t + i) : own[i]);
}

void NAME(quantize)(const quantizer *given, const float *x, int64_t ldx, int64_t width, int64_t begin, int64_t end) {
  const quantizer a = *given; /* a copy, which no store can change */
  for (int64_t t = begin; t < end; t += ROWS_AT_ONCE)
    quantize_rows(&a, x + t * ldx, ldx, width, t, end - t < ROWS_AT_ONCE ? end - t : ROWS_AT_ONCE);
}

void NAME(range)(float *ranges, const float *x, int64_t ldx, const float *mul, int64_t width, int64_t begin, int64_t end) {
  for (int64_t t = begin; t < end; t++)
    row_range(ranges + 2 * t, x + t * ldx, mul, width);
}

/* ---- Tile epilogues ----------------------------------------------------------------------------------------------- */

/* n lanes from column k on, of rows t0 to t0 + m. c holds int32 if `integer`, else float. */
INLINE void columns(const epilogue e, const char *c, int64_t ldc, int64_t t0, int m, int64_t k, int n, int integer,
                    int activation) {
  v16 bias = vload(e.bias + k, n), scale = integer ? vload(e.scale + k, n) : bias, mul = e.q ? vload(e.q_mul + k, n) : bias;
  v16 lo = vsplat((float)e.q_lo), hi = vsplat((float)e.q_hi), add = e.q && e.q_add ? vload(e.q_add + k, n) : bias;
  v16i wsum = integer ? viload(e.wsum + k, n) : visplat(0), offset = vimul(visplat(e.zero), wsum), zero = visplat(e.q_zero);
  for (int64_t t = t0; t < t0 + m; t++, c += 4 * ldc) {
    v16 v;
    if (integer) {
      if (e.row_zero)
        offset = vimul(visplat(e.row_zero[t]), wsum);
      v = vfloat(visub(viload((const int32_t *)(const void *)c, n), offset));
      if (e.row_scale)
        v = vmul(v, vsplat(e.row_scale[t]));
      v = vfma(v, scale, bias);
    } else
      v = vadd(vload(c, n), bias);
    v = activate(v, activation);
    if (e.residual)
      v = vadd(v, vload(e.residual + t * e.ld_residual + k, n));
    if (e.y)
      vstore(e.y + t * e.ldy + k, v, n);
    if (e.q)
      store_quantized(e.q + t * e.ldq + k, e.q_add ? vfma(v, mul, add) : vmul(v, mul), lo, hi, zero, n);
  }
}

INLINE void tile(const epilogue e, const void *c, int64_t ldc, int64_t t0, int m, int64_t n0, int width, int integer,
                 int activation) {
  LANES(width, columns(e, (const char *)c + 4 * k, ldc, t0, m, n0 + k, n, integer, activation));
}

/* The epilogue goes by value: a copy, which no store can change. */
INLINE void by_activation(const epilogue e, const void *c, int64_t ldc, int64_t t0, int m, int64_t n0, int width, int integer) {
  switch (e.activation) {
  case PGEE_GELU: tile(e, c, ldc, t0, m, n0, width, integer, PGEE_GELU); break;
  case PGEE_GELU_TANH: tile(e, c, ldc, t0, m, n0, width, integer, PGEE_GELU_TANH); break;
  case PGEE_GELU_ROUNDED: tile(e, c, ldc, t0, m, n0, width, integer, PGEE_GELU_ROUNDED); break;
  case PGEE_GELU_TANH_ROUNDED: tile(e, c, ldc, t0, m, n0, width, integer, PGEE_GELU_TANH_ROUNDED); break;
  case PGEE_RELU: tile(e, c, ldc, t0, m, n0, width, integer, PGEE_RELU); break;
  case PGEE_TANH: tile(e, c, ldc, t0, m, n0, width, integer, PGEE_TANH); break;
  case PGEE_QUICK_GELU: tile(e, c, ldc, t0, m, n0, width, integer, PGEE_QUICK_GELU); break;
  case PGEE_SILU: tile(e, c, ldc, t0, m, n0, width, integer, PGEE_SILU); break;
  default: tile(e, c, ldc, t0, m, n0, width, integer, PGEE_IDENTITY); break;
  }
}

void NAME(epilogue_s32)(const epilogue *e, const int32_t *c, int64_t ldc, int64_t t0, int m, int64_t n0, int n) {
  by_activation(*e, c, ldc, t0, m, n0, n, 1);
}

void NAME(epilogue_f32)(const epilogue *e, const float *c, int64_t ldc, int64_t t0, int m, int64_t n0, int n) {
  by_activation(*e, c, ldc, t0, m, n0, n, 0);
}

/* ---- LayerNorm ---------------------------------------------------------------------------------------------------- */

/* Where row t of v = x + residual is after the first pass: x itself if there is no residual. */
INLINE float *norm_output(const norm *a, int64_t t) { return a->y ? a->y + t * a->ldy : a->scratch; }
INLINE const float *norm_input(const norm *a, int64_t t) { return a->residual ? norm_output(a, t) : a->x + t * a->ldx; }

INLINE float row_mean(const norm *a, int64_t t) {
  const float *x = a->x + t * a->ldx;
  v16 sum = vsplat(0);
  if (a->residual) {
    const float *residual = a->residual + t * a->ld_residual;
    float *y = norm_output(a, t);
    LANES(a->width, v16 v = vadd(vload(x + k, n), vload(residual + k, n)); sum = vadd(sum, v); vstore(y + k, v, n));
  } else
    LANES(a->width, sum = vadd(sum, vload(x + k, n)));
  return vsum(sum) / (float)a->width;
}

INLINE float row_rstd(const norm *a, int64_t t, float row_mean) {
  const float *x = norm_input(a, t);
  v16 mean = vsplat(row_mean), squares = vsplat(0);
  LANES(a->width, v16 d = vfirst(vsub(vload(x + k, n), mean), vsplat(0), n); squares = vfma(d, d, squares));
  return 1.0f / sqrtf(vsum(squares) / (float)a->width + a->eps);
}

INLINE v16 normalized(const norm *a, const float *x, v16 mean, v16 rstd, int64_t k, int n) {
  return vfma(vmul(vsub(vload(x + k, n), mean), rstd), vload(a->gamma + k, n), vload(a->beta + k, n));
}

/* The last pass; quantizes too if that is static. */
INLINE void norm_row(const norm *a, int64_t t, float row_mean, float row_rstd) {
  const quantizer *z = &a->quantize;
  const float *x = norm_input(a, t), *mul = z->mul, *add = z->add;
  float *y = norm_output(a, t);
  v16 mean = vsplat(row_mean), rstd = vsplat(row_rstd), lo = vsplat((float)z->lo), hi = vsplat((float)z->hi);
  v16i zero = visplat(z->zero);
  if (z->mode == QUANTIZE_STATIC) {
    uint8_t *q = z->q + t * z->ldq;
    int stored = a->y != 0;
    LANES(a->width, v16 v = normalized(a, x, mean, rstd, k, n); if (stored) vstore(y + k, v, n);
          store_quantized(q + k, scaled(v, mul, add, k, n), lo, hi, zero, n));
  } else
    LANES(a->width, vstore(y + k, normalized(a, x, mean, rstd, k, n), n));
}

void NAME(norm)(const norm *given, int64_t begin, int64_t end) {
  const norm a = *given;                 /* a copy, which no store can change */
  int64_t rows = a.y ? ROWS_AT_ONCE : 1; /* scratch holds one row */
  for (int64_t t = begin; t < end; t += rows) {
    float mean[ROWS_AT_ONCE], rstd[ROWS_AT_ONCE];
    int64_t count = end - t < rows ? end - t : rows;
    for (int64_t i = 0; i < count; i++)
      mean[i] = row_mean(&a, t + i);
    for (int64_t i = 0; i < count; i++)
      rstd[i] = row_rstd(&a, t + i, mean[i]);
    for (int64_t i = 0; i < count; i++)
      norm_row(&a, t + i, mean[i], rstd[i]);
    if (a.quantize.mode == QUANTIZE_DYNAMIC)
      quantize_rows(&a.quantize, norm_output(&a, t), a.ldy, a.width, t, count);
  }
}

/* ---- Embedding, pooling, the rest ---------------------------------------------------------------------------------- */

/* Lanes k to k + n of a row of a table. */
INLINE v16 load_row(const table_row r, int64_t k, int n) {
  const char *p = r.values;
  switch (r.dtype) {
  case PGEE_F32: return vload(p + 4 * k, n);
  case PGEE_F16: return vload_f16(p + 2 * k, n);
  case PGEE_BF16: return vload_bf16(p + 2 * k, n);
  default: return vmul(vload_s8(p + k, n), vsplat(r.scale));
  }
}

void NAME(embed)(float *y, const table_row *word, const table_row *position, const table_row *type, int64_t width) {
  const table_row w = *word, none = {0}, p = position ? *position : none, t = type ? *type : none;
  LANES(width, v16 v = load_row(w, k, n); if (t.values) v = vadd(v, load_row(t, k, n));
        if (p.values) v = vadd(v, load_row(p, k, n)); vstore(y + k, v, n));
}

INLINE v16 pool_lanes(const float *x, int64_t ldx, int64_t rows, int mode, int n) {
  if (rows == 0)
    return vsplat(0);
  if (mode == PGEE_POOL_FIRST || mode == PGEE_POOL_LAST)
    return vload(mode == PGEE_POOL_FIRST ? x : x + (rows - 1) * ldx, n);
  v16 r = vload(x, n);
  if (mode == PGEE_POOL_MAX) {
    for (int64_t t = 1; t < rows; t++) {
      v16 v = vload(x + t * ldx, n);
      r = vnan(v, vmax(v, r));
    }
    return r;
  }
  if (mode == PGEE_POOL_WEIGHTED) {
    for (int64_t t = 1; t < rows; t++)
      r = vfma(vsplat((float)(t + 1)), vload(x + t * ldx, n), r);
    return vdiv(r, vsplat((float)(rows * (rows + 1) / 2)));
  }
  for (int64_t t = 1; t < rows; t++)
    r = vadd(r, vload(x + t * ldx, n));
  return vdiv(r, vsplat(mode == PGEE_POOL_MEAN ? (float)rows : sqrtf((float)rows)));
}

void NAME(pool)(float *y, const float *x, int64_t ldx, int64_t rows, int64_t width, int mode) {
  LANES(width, vstore(y + k, pool_lanes(x + k, ldx, rows, mode, n), n));
}

void NAME(unit)(float *y, const float *x, int64_t width) {
  v16 squares = vsplat(0);
  LANES(width, v16 v = vload(x + k, n); squares = vfma(v, v, squares));
  float length = sqrtf(vsum(squares));
  v16 divisor = vsplat(length < 1e-12f ? 1e-12f : length);
  LANES(width, vstore(y + k, vdiv(vload(x + k, n), divisor), n));
}

INLINE void minmax_lanes(float *min, float *max, const float *x, int64_t ldx, int64_t rows, int n) {
  v16 lo = vload(min, n), hi = vload(max, n);
  for (int64_t t = 0; t < rows; t++) {
    v16 v = vload(x + t * ldx, n);
    lo = vmin(v, lo);
    hi = vmax(v, hi);
  }
  vstore(min, lo, n);
  vstore(max, hi, n);
}

void NAME(minmax)(float *min, float *max, const float *x, int64_t ldx, int64_t rows, int64_t width) {
  LANES(width, minmax_lanes(min + k, max + k, x + k, ldx, rows, n));
}
