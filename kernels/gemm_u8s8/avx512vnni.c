/* avx512vnni.c: a tile of up to 6 rows by 64 channels in 24 accumulators; one of 7; and one beside the epilogue of another.
 *
 *                b0        b1        b2        b3       one group of the panel: 4 inputs of 64 channels
 *   row 0 x   | c00 ... | c01 ... | c02 ... | c03 ... |
 *   ...                                                 vpdpbusd adds the 4 products of each channel
 *   row 5 x   | c50 ... | c51 ... | c52 ... | c53 ... |
 *
 * Of 32 registers, 24 accumulators, 4 of weights and one broadcast of 4 inputs are live. The accumulators have names because gcc
 * keeps an array of them in memory. A group is 24 products, so 12 cycles at two a cycle; its 10 loads, two prefetches and
 * the loop fit beside them.
 */
#include <string.h>

#include "../rows/v16_avx512.h"

#include "../rows/functions.h"
#include "../rows/rows.h"
#include "layout.h"

INLINE __m512i four(const uint8_t *a) {
  int32_t x;
  memcpy(&x, a, sizeof x);
  return _mm512_set1_epi32(x);
}

#define EACH_ROW(f) f(0) f(1) f(2) f(3) f(4) f(5)
#define ZERO(i) __m512i c##i##0 = _mm512_setzero_si512(), c##i##1 = c##i##0, c##i##2 = c##i##0, c##i##3 = c##i##0;
#define STEP(i)                                    \
  if (i < m) {                                     \
    __m512i x = four(a + i * lda);                 \
    c##i##0 = _mm512_dpbusd_epi32(c##i##0, x, b0); \
    c##i##1 = _mm512_dpbusd_epi32(c##i##1, x, b1); \
    c##i##2 = _mm512_dpbusd_epi32(c##i##2, x, b2); \
    c##i##3 = _mm512_dpbusd_epi32(c##i##3, x, b3); \
  }
#define GROUP_STEP                                                            \
  do {                                                                        \
    _mm_prefetch(next.from, _MM_HINT_T1);                                     \
    _mm_prefetch(next.from + 64, _MM_HINT_T1);                                \
    __m512i b0 = _mm512_load_si512(b), b1 = _mm512_load_si512(b + 64);        \
    __m512i b2 = _mm512_load_si512(b + 128), b3 = _mm512_load_si512(b + 192); \
    EACH_ROW(STEP);                                                           \
    a += 4;                                                                   \
    b += GROUP_BYTES;                                                         \
    next.from += next.step;                                                   \
  } while (0)
#define STORE(i)                                  \
  if (i < m) {                                    \
    _mm512_store_si512(c + i * 64, c##i##0);      \
    _mm512_store_si512(c + i * 64 + 16, c##i##1); \
    _mm512_store_si512(c + i * 64 + 32, c##i##2); \
    _mm512_store_si512(c + i * 64 + 48, c##i##3); \
  }

/* m is a constant in each copy. */
INLINE void tile(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, ahead next, const int m) {
  EACH_ROW(ZERO);
  for (int64_t g = kblocks * 16; g > 0; g--)
    GROUP_STEP;
  EACH_ROW(STORE);
}

/* Seven rows: 28 accumulators, three of weights, one broadcast; the fourth of weights is read from memory by each product, 17 loads
 * beside 28 products. A row left over is better there than in a tile of its own, which would read the whole panel again. */
#define STEP7(i)                                                       \
  {                                                                    \
    __m512i x = four(a + i * lda);                                     \
    c##i##0 = _mm512_dpbusd_epi32(c##i##0, x, b0);                     \
    c##i##1 = _mm512_dpbusd_epi32(c##i##1, x, b1);                     \
    c##i##2 = _mm512_dpbusd_epi32(c##i##2, x, b2);                     \
    __asm__("vpdpbusd %2, %1, %0" : "+v"(c##i##3) : "v"(x), "m"(*b3)); \
  }

static void tile7(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, ahead next) {
  enum { m = 7 };
  EACH_ROW(ZERO);
  ZERO(6)
  for (int64_t g = kblocks * 16; g > 0; g--) {
    _mm_prefetch(next.from, _MM_HINT_T1);
    _mm_prefetch(next.from + 64, _MM_HINT_T1);
    __m512i b0 = _mm512_load_si512(b), b1 = _mm512_load_si512(b + 64), b2 = _mm512_load_si512(b + 128);
    const __m512i *b3 = (const __m512i *)(const void *)(b + 192);
    EACH_ROW(STEP7);
    STEP7(6)
    a += 4;
    b += GROUP_BYTES;
    next.from += next.step;
  }
  EACH_ROW(STORE);
  STORE(6)
}

void gemm_u8s8_avx512vnni(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, ahead next) {
  switch (m) {
  case 1: tile(c, a, lda, b, kblocks, next, 1); break;
  case 2: tile(c, a, lda, b, kblocks, next, 2); break;
  case 3: tile(c, a, lda, b, kblocks, next, 3); break;
  case 4: tile(c, a, lda, b, kblocks, next, 4); break;
  case 5: tile(c, a, lda, b, kblocks, next, 5); break;
  case 6: tile(c, a, lda, b, kblocks, next, 6); break;
  default: tile7(c, a, lda, b, kblocks, next); break;
  }
}

/* ---- Beside an epilogue ------------------------------------------------------------------------------------------------ */

/* Products keep two of the core's four units busy, and an epilogue mostly needs the others: sixteen columns of it after every few
 * groups cost a quarter to two fifths of what they cost on their own. Three registers are left for it, and most constants come from
 * memory. */

/* What runs so: to float, to u8, by GELU in pieces to u8; to float, to u8 with a scale for each row, by GELU in pieces to float. */
enum { NONE, TO_F32, TO_U8, GELU_TO_U8, ROWS_TO_F32, ROWS_TO_U8, ROWS_GELU_TO_F32 };

/* Rows with scales of their own have zero points of their own, which are one where they are symmetric. */
INLINE int has_one_zero(const tile_pending *p) {
  for (int i = 1; i < p->m; i++)
    if (p->e->row_zero[p->t0 + i] != p->e->row_zero[p->t0])
      return 0;
  return 1;
}

INLINE int kind_of(const tile_pending *p, int64_t kblocks) {
  const epilogue *e = p->e;
  if (!e || p->n < PANEL || p->m > kblocks * 4 || e->residual || !e->y == !e->q || !e->row_zero != !e->row_scale)
    return NONE;
  int rows = e->row_zero != NULL, activation = rounded_activation(e);
  if (rows && !has_one_zero(p))
    return NONE;
  if (activation == PGEE_IDENTITY)
    return e->y ? (rows ? ROWS_TO_F32 : TO_F32) : rows ? ROWS_TO_U8 : TO_U8;
  if ((activation == PGEE_GELU_ROUNDED || activation == PGEE_GELU_TANH_ROUNDED) && rows == (e->y != NULL))
    return rows ? ROWS_GELU_TO_F32 : GELU_TO_U8;
  return NONE;
}

/* Pointers to the tile's first column, and first row of the output. */
typedef struct beside {
  const int32_t *c;
  int rows;
  const int32_t *offset; /* zero * wsum */
  const float *row_scale, *scale, *bias, *mul;
  const float (*pieces)[16];
  v16 lo, hi;
  v16i zero;
  float *y;
  uint8_t *q;
  int64_t ld; /* of y or q */
} beside;

static beside lower(const tile_pending *p, int32_t *offset) {
  const epilogue *e = p->e;
  int64_t n = p->n0;
  int32_t zero = e->row_zero ? e->row_zero[p->t0] : e->zero;
  for (int k = 0; k < PANEL; k += 16)
    _mm512_storeu_si512(offset + k, vimul(visplat(zero), viload(e->wsum + n + k, 16)));
  return (beside){
      .c = p->c,
      .rows = p->m,
      .offset = offset,
      .row_scale = e->row_scale ? e->row_scale + p->t0 : NULL,
      .scale = e->scale + n,
      .bias = e->bias + n,
      .mul = e->q ? e->q_mul + n : NULL,
      .pieces = rounded_activation(e) == PGEE_GELU_ROUNDED ? gelu_erf_pieces : gelu_tanh_pieces,
      .lo = vsplat((float)e->q_lo),
      .hi = vsplat((float)e->q_hi),
      .zero = visplat(e->q_zero),
      .y = e->y ? e->y + p->t0 * e->ldy + n : NULL,
      .q = e->q ? e->q + p->t0 * e->ldq + n : NULL,
      .ld = e->y ? e->ldy : e->ldq,
  };
}

/* Columns k to k + 16 of row i, as in rows/body.h. */
INLINE void finish(const beside *d, int64_t i, int64_t k, const int kind) {
  v16 v = vfloat(visub(viload(d->c + i * PANEL + k, 16), viload(d->offset + k, 16)));
  if (kind >= ROWS_TO_F32)
    v = vmul(v, vsplat(d->row_scale[i]));
  v = vfma(v, vload(d->scale + k, 16), vload(d->bias + k, 16));
  if (kind == GELU_TO_U8 || kind == ROWS_GELU_TO_F32)
    v = gelu_pieces(v, d->pieces);
  if (kind == TO_F32 || kind == ROWS_TO_F32 || kind == ROWS_GELU_TO_F32)
    vstore(d->y + i * d->ld + k, v, 16);
  else
    store_quantized(d->q + i * d->ld + k, vmul(v, vload(d->mul + k, 16)), d->lo, d->hi, d->zero, 16);
}

/* m and kind are constants in each copy. */
INLINE void tile_beside(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, ahead next, const beside *d,
                        const int m, const int kind) {
  EACH_ROW(ZERO);
  int64_t each = kblocks * 16 / (4 * d->rows), rest = kblocks * 16 - each * 4 * d->rows;
  for (int64_t i = 0, k = 0; i < d->rows; i += k == 0) {
    for (int64_t g = each; g > 0; g--)
      GROUP_STEP;
    finish(d, i, k, kind);
    k = (k + 16) % PANEL;
  }
  for (; rest > 0; rest--)
    GROUP_STEP;
  EACH_ROW(STORE);
}

#define BESIDE(m, kind) tile_beside(c, a, lda, b, kblocks, next, &d, m, kind)

void gemm_u8s8_beside_avx512vnni(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, ahead next,
                                 const tile_pending *p) {
  int kind = m == 5 || m == 6 ? kind_of(p, kblocks) : NONE;
  if (kind == NONE) {
    gemm_u8s8_avx512vnni(c, a, lda, b, kblocks, m, next);
    if (p->e)
      epilogue_s32_avx512vnni(p->e, p->c, PANEL, p->t0, p->m, p->n0, p->n);
    return;
  }
  _Alignas(64) int32_t offset[PANEL];
  beside d = lower(p, offset);
  switch (m == 5 ? -kind : kind) {
  case -TO_F32: BESIDE(5, TO_F32); break;
  case -TO_U8: BESIDE(5, TO_U8); break;
  case -GELU_TO_U8: BESIDE(5, GELU_TO_U8); break;
  case -ROWS_TO_F32: BESIDE(5, ROWS_TO_F32); break;
  case -ROWS_TO_U8: BESIDE(5, ROWS_TO_U8); break;
  case -ROWS_GELU_TO_F32: BESIDE(5, ROWS_GELU_TO_F32); break;
  case TO_F32: BESIDE(6, TO_F32); break;
  case TO_U8: BESIDE(6, TO_U8); break;
  case GELU_TO_U8: BESIDE(6, GELU_TO_U8); break;
  case ROWS_TO_F32: BESIDE(6, ROWS_TO_F32); break;
  case ROWS_TO_U8: BESIDE(6, ROWS_TO_U8); break;
  default: BESIDE(6, ROWS_GELU_TO_F32); break;
  }
}
