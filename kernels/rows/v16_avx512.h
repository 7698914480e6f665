/* v16_avx512.h: sixteen floats as one register. v16_ref.h says what each function does. */
#include <immintrin.h>
#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

typedef __m512 v16;
typedef __m512i v16i;

INLINE __mmask16 lanes(int n) { return (__mmask16)(0xffffu >> (16 - n)); }

INLINE v16 vsplat(float x) { return _mm512_set1_ps(x); }
INLINE v16 vload(const void *p, int n) { return n == 16 ? _mm512_loadu_ps(p) : _mm512_maskz_loadu_ps(lanes(n), p); }
INLINE v16 vload_bf16(const void *p, int n) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(lanes(n), p)), 16));
}
INLINE v16 vload_f16(const void *p, int n) { return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(lanes(n), p)); }
INLINE v16 vload_s8(const void *p, int n) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(lanes(n), p))); }
INLINE void vstore(float *p, v16 a, int n) {
  if (n == 16)
    _mm512_storeu_ps(p, a);
  else
    _mm512_mask_storeu_ps(p, lanes(n), a);
}

INLINE v16 vadd(v16 a, v16 b) { return _mm512_add_ps(a, b); }
INLINE v16 vsub(v16 a, v16 b) { return _mm512_sub_ps(a, b); }
INLINE v16 vmul(v16 a, v16 b) { return _mm512_mul_ps(a, b); }
INLINE v16 vdiv(v16 a, v16 b) { return _mm512_div_ps(a, b); }
INLINE v16 vfma(v16 a, v16 b, v16 c) { return _mm512_fmadd_ps(a, b, c); }
INLINE v16 vfnma(v16 a, v16 b, v16 c) { return _mm512_fnmadd_ps(a, b, c); }
INLINE v16 vfms(v16 a, v16 b, v16 c) { return _mm512_fmsub_ps(a, b, c); }
INLINE v16 vmin(v16 a, v16 b) { return _mm512_min_ps(a, b); }
INLINE v16 vmax(v16 a, v16 b) { return _mm512_max_ps(a, b); }
INLINE v16 vabs(v16 a) { return _mm512_abs_ps(a); }
INLINE v16 vsign(v16 a, v16 b) {
  __m512i magnitude = _mm512_set1_epi32(0x7fffffff); /* 0xca: a where its bits are set, else b */
  return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(magnitude, _mm512_castps_si512(a), _mm512_castps_si512(b), 0xca));
}
INLINE v16 vless(v16 a, v16 b, v16 x, v16 y) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x); }
INLINE v16 vnan(v16 x, v16 y) { return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), y, x); }
INLINE v16 vfirst(v16 a, v16 b, int n) { return n == 16 ? a : _mm512_mask_blend_ps(lanes(n), b, a); }
/* Comparing into a mask takes another port than vmax. */
INLINE v16 vpositive_less(v16 x, v16 p) {
  return _mm512_mask_sub_ps(_mm512_sub_ps(x, p), _mm512_cmp_ps_mask(x, vsplat(0), _CMP_LT_OQ), vsplat(0), p);
}
INLINE v16 vexponent(v16 a) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(a), 23)); }
INLINE v16 vpick(const float *table, v16 a) {
  return _mm512_permutexvar_ps(_mm512_srli_epi32(_mm512_castps_si512(a), 20), _mm512_loadu_ps(table));
}

/* Lanes i and i + 8, i + 4, i + 2, i + 1. */
#define REDUCE(a, by8, by4)                                                \
  __m256 h = by8(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1)); \
  __m128 q = by4(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));  \
  q = by4(q, _mm_movehl_ps(q, q));                                         \
  return _mm_cvtss_f32(by4(q, _mm_movehdup_ps(q)))
INLINE float vsum(v16 a) { REDUCE(a, _mm256_add_ps, _mm_add_ps); }
INLINE float vleast(v16 a) { REDUCE(a, _mm256_min_ps, _mm_min_ps); }
INLINE float vgreatest(v16 a) { REDUCE(a, _mm256_max_ps, _mm_max_ps); }
#undef REDUCE

INLINE v16i visplat(int32_t x) { return _mm512_set1_epi32(x); }
INLINE v16i viload(const int32_t *p, int n) { return n == 16 ? _mm512_loadu_si512(p) : _mm512_maskz_loadu_epi32(lanes(n), p); }
INLINE v16i viadd(v16i a, v16i b) { return _mm512_add_epi32(a, b); }
INLINE v16i visub(v16i a, v16i b) { return _mm512_sub_epi32(a, b); }
INLINE v16i vimul(v16i a, v16i b) { return _mm512_mullo_epi32(a, b); }
INLINE v16i vimax(v16i a, v16i b) { return _mm512_max_epi32(a, b); }
INLINE v16i vifirst(v16i a, v16i b, int n) { return _mm512_mask_blend_epi32(lanes(n), b, a); }
INLINE int32_t visum(v16i a) { return _mm512_reduce_add_epi32(a); }
INLINE int32_t vigreatest(v16i a) { return _mm512_reduce_max_epi32(a); }
INLINE v16 vfloat(v16i a) { return _mm512_cvtepi32_ps(a); }
INLINE v16i vround(v16 a) { return _mm512_cvtps_epi32(a); }
INLINE void vstore_u8(uint8_t *p, v16i a, int n) {
  if (n == 16)
    _mm_storeu_si128((__m128i *)(void *)p, _mm512_cvtepi32_epi8(a));
  else
    _mm_mask_storeu_epi8(p, lanes(n), _mm512_cvtepi32_epi8(a));
}
/* Packing cuts to 0 and more, so lo is made 0 meanwhile: that saves four comparisons of floats. What is too small, and NaN, which
 * vmin returns as its second operand, converts to the least integer. */
INLINE void vstore_rounded(uint8_t *p, v16 a, v16 b, v16 c, v16 d, int32_t lo, int32_t hi, int32_t zero) {
  v16 most = vsplat((float)hi);
  v16i up = visplat(-lo);
  __m512i ab = _mm512_packus_epi32(viadd(vround(vmin(most, a)), up), viadd(vround(vmin(most, b)), up));
  __m512i cd = _mm512_packus_epi32(viadd(vround(vmin(most, c)), up), viadd(vround(vmin(most, d)), up));
  __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  __m512i x = _mm512_permutexvar_epi32(order, _mm512_packus_epi16(ab, cd));
  _mm512_storeu_si512(p, _mm512_add_epi8(x, _mm512_set1_epi8((char)(lo + zero))));
}

/* Four columns at a time: lane group g of t[j] holds row 4 g + j, so that four 4 by 4 transpositions in the lanes give whole
 * columns. */
INLINE void vtranspose(float *to, int64_t ldto, const float *from, int64_t ldfrom) {
  for (int c = 0; c < 16; c += 4) {
    __m512 t[4];
    for (int j = 0; j < 4; j++) {
      const float *p = from + j * ldfrom + c;
      t[j] = _mm512_castps128_ps512(_mm_loadu_ps(p));
      t[j] = _mm512_insertf32x4(t[j], _mm_loadu_ps(p + 4 * ldfrom), 1);
      t[j] = _mm512_insertf32x4(t[j], _mm_loadu_ps(p + 8 * ldfrom), 2);
      t[j] = _mm512_insertf32x4(t[j], _mm_loadu_ps(p + 12 * ldfrom), 3);
    }
    __m512d a = _mm512_castps_pd(_mm512_unpacklo_ps(t[0], t[1])), b = _mm512_castps_pd(_mm512_unpacklo_ps(t[2], t[3]));
    __m512d d = _mm512_castps_pd(_mm512_unpackhi_ps(t[0], t[1])), e = _mm512_castps_pd(_mm512_unpackhi_ps(t[2], t[3]));
    _mm512_storeu_ps(to + c * ldto, _mm512_castpd_ps(_mm512_unpacklo_pd(a, b)));
    _mm512_storeu_ps(to + (c + 1) * ldto, _mm512_castpd_ps(_mm512_unpackhi_pd(a, b)));
    _mm512_storeu_ps(to + (c + 2) * ldto, _mm512_castpd_ps(_mm512_unpacklo_pd(d, e)));
    _mm512_storeu_ps(to + (c + 3) * ldto, _mm512_castpd_ps(_mm512_unpackhi_pd(d, e)));
  }
}
