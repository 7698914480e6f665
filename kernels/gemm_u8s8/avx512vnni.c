/* avx512vnni.c: a tile of up to 6 rows by 64 channels in 24 accumulators; one of 7; and one beside the epilogue of another.
 *
 *                b0        b1        b2        b3       one group of the panel: 4 inputs of 64 channels
 *   row 0 x   | c00 ... | c01 ... | c02 ... | c03 ... |
 *   ...                                                 vpdpbusd adds the 4 products of each channel
 *   row 5 x   | c50 ... | c51 ... | c52 ... | c53 ... |
 *
 * 29 of 32 registers hold 24 accumulators, 4 vectors of weights and one broadcast of 4 inputs. The accumulators have names because gcc
 * keeps an array of them in memory. A group is 24 products, so 12 cycles at two a cycle; its 10 loads, two prefetches and
 * the loop fit beside them.
 */
#include <string.h>

#include "kernels/rows/v16_avx512.h"

#include "kernels/rows/functions.h"
#include "finish.h"
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
INLINE void tile(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, prefetch next, const int m) {
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

static void tile7(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, prefetch next) {
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

void gemm_u8s8_avx512vnni(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, prefetch next) {
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

/* Products keep two of the core's four units busy, and of an epilogue only fma, multiplications and permutations want those too:
 * sixteen columns of it after every few groups cost little more than these. Three registers are left for it. All else comes from
 * memory, and each time anew: what a compiler keeps there for the time of a loop, or what was worked out for a single tile, was
 * stored a moment before, and where a load has met its store like that, the core lets it wait for others, too (up to a tenth of
 * the tile's time). So all of it is laid out once a panel. */

void prepare_panel_avx512vnni(panel_constants *panel, const epilogue *e, int64_t n0) { lay_out_panel(panel, e, n0); }

/* Columns k to k + 16 of a row, c those of its accumulators, as in rows/body.h. */
INLINE void finish(char *row, const int32_t *c, int64_t k, const panel_constants *of, const float (*pieces)[16],
                   const float *row_scale, const int kind) {
  __asm__("" : "+r"(of), "+r"(pieces)); /* to the compiler what they point to is new */
  v16 v = finished(c, k, of, pieces, row_scale, kind, gelu_pieces);
  if (is_float(kind))
    vstore((float *)(void *)row + k, v, 16);
  else
    store_quantized((uint8_t *)row + k, v, vsplat(of->lo), vsplat(of->hi), visplat(of->zero), 16);
}

/* m and kind are constants in each copy. */
INLINE void tile_overlapped(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, prefetch next,
                            const pending_tile *p, const int m, const int kind) {
  EACH_ROW(ZERO);
  const epilogue *e = p->e;
  const float(*pieces)[16] = pieces_of(e);
  int64_t groups = kblocks * 16, k = 0, ld;
  char *row = results_of(p, &ld, kind);
  const int32_t *from = p->c, *end = from + p->m * PANEL;
  const float *row_scale = kind >= ROWS_TO_F32 ? e->row_scale + p->t0 : NULL;
#define FINISH_SIXTEEN                                                        \
  do {                                                                        \
    finish(row, from, k, p->panel, pieces, row_scale, kind);                  \
    from += 16;                                                               \
    row += k == PANEL - 16 ? ld : 0;                                          \
    if (kind >= ROWS_TO_F32 && k == PANEL - 16)                               \
      row_scale++;                                                            \
    k = (k + 16) % PANEL;                                                     \
    __asm__("" : "+r"(row), "+r"(k)); /* no other loop is made of this one */ \
  } while (0)
  int64_t each = groups / (4 * p->m);
  if (each < 4)
    for (; from < end && groups > 0; groups -= 2) {
      GROUP_STEP;
      GROUP_STEP;
      FINISH_SIXTEEN;
    }
  else if (each < 10)
    for (; from < end; groups -= 4) {
      GROUP_STEP;
      GROUP_STEP;
      GROUP_STEP;
      GROUP_STEP;
      FINISH_SIXTEEN;
    }
  else
    for (; from < end; groups -= each) {
      for (int64_t g = each; g > 0; g--) {
        GROUP_STEP;
        __asm__("" : "+r"(a), "+r"(b), "+r"(next.from)); /* they stay in registers */
      }
      FINISH_SIXTEEN;
    }
  for (; groups > 0; groups--)
    GROUP_STEP;
  while (from < end)
    FINISH_SIXTEEN;
#undef FINISH_SIXTEEN
  EACH_ROW(STORE);
}

#define OVERLAPPED(m, kind) tile_overlapped(c, a, lda, b, kblocks, next, p, m, kind)

void gemm_u8s8_overlapped_avx512vnni(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m,
                                     prefetch next, const pending_tile *p) {
  int kind = m == 5 || m == 6 ? kind_of(p) : NONE;
  if (kind == NONE) {
    gemm_u8s8_avx512vnni(c, a, lda, b, kblocks, m, next);
    if (p->e)
      epilogue_s32_avx512vnni(p->e, p->c, PANEL, p->t0, p->m, p->n0, p->n);
    return;
  }
  switch (m == 5 ? -kind : kind) {
  case -TO_F32: OVERLAPPED(5, TO_F32); break;
  case -TO_U8: OVERLAPPED(5, TO_U8); break;
  case -GELU_TO_U8: OVERLAPPED(5, GELU_TO_U8); break;
  case -GELU_SHIFTED_TO_U8: OVERLAPPED(5, GELU_SHIFTED_TO_U8); break;
  case -ROWS_TO_F32: OVERLAPPED(5, ROWS_TO_F32); break;
  case -ROWS_TO_U8: OVERLAPPED(5, ROWS_TO_U8); break;
  case -ROWS_GELU_TO_F32: OVERLAPPED(5, ROWS_GELU_TO_F32); break;
  case TO_F32: OVERLAPPED(6, TO_F32); break;
  case TO_U8: OVERLAPPED(6, TO_U8); break;
  case GELU_TO_U8: OVERLAPPED(6, GELU_TO_U8); break;
  case GELU_SHIFTED_TO_U8: OVERLAPPED(6, GELU_SHIFTED_TO_U8); break;
  case ROWS_TO_F32: OVERLAPPED(6, ROWS_TO_F32); break;
  case ROWS_TO_U8: OVERLAPPED(6, ROWS_TO_U8); break;
  default: OVERLAPPED(6, ROWS_GELU_TO_F32); break;
  }
}
