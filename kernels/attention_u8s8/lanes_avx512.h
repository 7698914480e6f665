/* lanes_avx512.h: the definitions that head.h and blocks.h need, but for tiles, for AVX-512. */
typedef uint8_t element;

#define PROBABILITY_AVX512
#include "probability.h"

/* Two halves of 64 bytes, of 16 bits each, as one, cut to 0 to 255. */
INLINE __m512i narrow(__m512i ab, __m512i cd) {
  __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_permutexvar_epi32(order, _mm512_packus_epi16(ab, cd));
}

/* Cuts to 0 to 255 as it narrows. */
INLINE v16i store_p(uint8_t *p, v16i a, v16i b, v16i c, v16i d) {
  __m512i x = narrow(_mm512_packus_epi32(a, b), _mm512_packus_epi32(c, d));
  _mm512_storeu_si512(p, x);
  return _mm512_sad_epu8(x, _mm512_setzero_si512());
}

#include "pack_avx512.h"

/* The queries as they are: what is read past D is multiplied by 0. */
INLINE const uint8_t *widen(void *to, const uint8_t *from, int64_t ld, int64_t D, int64_t count, int64_t *ldq) {
  (void)to, (void)D, (void)count;
  *ldq = ld;
  return from;
}

/* u8 minus 128 as s8, n bytes. */
INLINE void to_signed(int8_t *to, const uint8_t *from, int64_t n) {
  for (int64_t k = 0; k < n; k += 64) {
    __mmask64 some = n - k < 64 ? ~(~0ull << (n - k)) : ~0ull;
    _mm512_mask_storeu_epi8(to + k, some, _mm512_xor_si512(_mm512_maskz_loadu_epi8(some, from + k), _mm512_set1_epi8(-128)));
  }
}

/* 16 lanes; to is aligned to 64 bytes. */
INLINE void vistore(int32_t *to, v16i x) { _mm512_store_si512(to, x); }

/* to[i] = the largest lane or the sum of x[i][16], 16 rows. Lanes of two registers become neighbours, step by step. */
enum { REDUCE_MAX, REDUCE_SUM };
INLINE __m512i join(__m512i a, __m512i b, const int how) {
  return how == REDUCE_MAX ? _mm512_max_epi32(a, b) : _mm512_add_epi32(a, b);
}
INLINE __m512i join_pairs(const int32_t *x, const int how) { /* rows 0 and 8 */
  __m512i a = _mm512_load_si512(x), b = _mm512_load_si512(x + 8 * 16);
  return join(_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b), how);
}
INLINE __m512i join_fours(const int32_t *x, const int how) { /* rows 0, 8, 4, 12, in each quarter */
  __m512i a = join_pairs(x, how), b = join_pairs(x + 4 * 16, how);
  return join(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b), how);
}
INLINE __m512i join_eights(const int32_t *x, const int how) {
  __m512i a = join_fours(x, how), b = join_fours(x + 2 * 16, how);
  return join(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD), how);
}
INLINE void reduce16(int32_t *to, const int32_t *x, const int how) {
  __m512i a = join_eights(x, how), b = join_eights(x + 16, how);
  __m512i all = join(_mm512_shuffle_i32x4(a, b, 0x88), _mm512_shuffle_i32x4(a, b, 0xDD), how);
  __m512i order = _mm512_setr_epi32(0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15); /* the row of each lane */
  _mm512_i32scatter_epi32(to, order, all, 4);
}

/* p of four times 16 differences from the largest score, d, in place. The steps are those of `probability`, taken for all four
 * in turn: a core's scheduler is too small to look from one long chain of dependent steps to the next. */
INLINE v16i four_probabilities(uint8_t *p, const v16 *d, v16 c) {
  v16 magic = vsplat(0x1.8p23f + 127), u = vload(rounding, 16);
#define EACH_OF_FOUR(f) f(0) f(1) f(2) f(3)
#define POWER(i) v16 k##i = vfma(d[i], c, magic);
#define WHOLE(i) k##i = vsub(k##i, magic);
#define REST(i) v16 r##i = vfms(d[i], c, k##i);
#define FIRST(i) v16 x##i = vfma(vsplat(power_255[0]), r##i, vsplat(power_255[1]));
#define SECOND(i) x##i = vfma(x##i, r##i, vsplat(power_255[2]));
#define THIRD(i) x##i = vfma(x##i, r##i, vsplat(power_255[3]));
#define SCALED(i) x##i = _mm512_scalef_ps(x##i, k##i);
#define ROUNDED(i) v16i p##i = vround(vadd(x##i, u));
  EACH_OF_FOUR(POWER)
  EACH_OF_FOUR(WHOLE)
  EACH_OF_FOUR(REST)
  EACH_OF_FOUR(FIRST)
  EACH_OF_FOUR(SECOND)
  EACH_OF_FOUR(THIRD)
  EACH_OF_FOUR(SCALED)
  EACH_OF_FOUR(ROUNDED)
  return store_p(p, p0, p1, p2, p3);
}
