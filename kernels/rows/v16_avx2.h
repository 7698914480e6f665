/* v16_avx2.h: sixteen floats as two registers. v16_ref.h says what each function does. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

typedef struct v16 {
  __m256 a, b; /* lanes 0 to 7, 8 to 15 */
} v16;
typedef struct v16i {
  __m256i a, b;
} v16i;

/* Sixteen ones from first_lanes + 16 - n on are the mask of n lanes. */
static const int32_t first_lanes[32] = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
INLINE __m256i lanes_a(int n) { return _mm256_loadu_si256((const __m256i *)(const void *)(first_lanes + 16 - n)); }
INLINE __m256i lanes_b(int n) { return _mm256_loadu_si256((const __m256i *)(const void *)(first_lanes + 24 - n)); }

INLINE v16 vsplat(float x) { return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
INLINE v16 vload(const void *p, int n) {
  const float *f = p;
  if (n == 16)
    return (v16){_mm256_loadu_ps(f), _mm256_loadu_ps(f + 8)};
  return (v16){_mm256_maskload_ps(f, lanes_a(n)), _mm256_maskload_ps(f + 8, lanes_b(n))};
}
INLINE v16 vload_bf16(const void *p, int n) {
  uint16_t h[16] = {0};
  memcpy(h, p, (size_t)n * sizeof *h);
  __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)h));
  __m256i b = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(const void *)(h + 8)));
  return (v16){_mm256_castsi256_ps(_mm256_slli_epi32(a, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(b, 16))};
}
INLINE v16 vload_f16(const void *p, int n) {
  uint16_t h[16] = {0};
  memcpy(h, p, (size_t)n * sizeof *h);
  return (v16){_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)h)),
               _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(h + 8)))};
}
INLINE v16 vload_s8(const void *p, int n) {
  int8_t q[16] = {0};
  memcpy(q, p, (size_t)n);
  __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)q);
  return (v16){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
               _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes)))};
}
INLINE void vstore(float *p, v16 x, int n) {
  if (n == 16) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
  } else {
    _mm256_maskstore_ps(p, lanes_a(n), x.a);
    _mm256_maskstore_ps(p + 8, lanes_b(n), x.b);
  }
}

INLINE v16 vadd(v16 x, v16 y) { return (v16){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
INLINE v16 vsub(v16 x, v16 y) { return (v16){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
INLINE v16 vmul(v16 x, v16 y) { return (v16){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
INLINE v16 vdiv(v16 x, v16 y) { return (v16){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
INLINE v16 vfma(v16 x, v16 y, v16 z) { return (v16){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
INLINE v16 vfnma(v16 x, v16 y, v16 z) { return (v16){_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)}; }
INLINE v16 vfms(v16 x, v16 y, v16 z) { return (v16){_mm256_fmsub_ps(x.a, y.a, z.a), _mm256_fmsub_ps(x.b, y.b, z.b)}; }
INLINE v16 vmin(v16 x, v16 y) { return (v16){_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
INLINE v16 vmax(v16 x, v16 y) { return (v16){_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
INLINE v16 vabs(v16 x) {
  __m256 sign = _mm256_set1_ps(-0.0f);
  return (v16){_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
INLINE v16 vsign(v16 x, v16 y) {
  __m256 sign = _mm256_set1_ps(-0.0f);
  return (v16){_mm256_or_ps(_mm256_andnot_ps(sign, x.a), _mm256_and_ps(sign, y.a)),
               _mm256_or_ps(_mm256_andnot_ps(sign, x.b), _mm256_and_ps(sign, y.b))};
}
INLINE v16 vless(v16 p, v16 q, v16 x, v16 y) {
  return (v16){_mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(p.a, q.a, _CMP_LT_OQ)),
               _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(p.b, q.b, _CMP_LT_OQ))};
}
INLINE v16 vnan(v16 x, v16 y) {
  return (v16){_mm256_blendv_ps(y.a, x.a, _mm256_cmp_ps(x.a, x.a, _CMP_UNORD_Q)),
               _mm256_blendv_ps(y.b, x.b, _mm256_cmp_ps(x.b, x.b, _CMP_UNORD_Q))};
}
INLINE v16 vfirst(v16 x, v16 y, int n) {
  if (n == 16)
    return x;
  return (v16){_mm256_blendv_ps(y.a, x.a, _mm256_castsi256_ps(lanes_a(n))),
               _mm256_blendv_ps(y.b, x.b, _mm256_castsi256_ps(lanes_b(n)))};
}
INLINE v16 vexponent(v16 x) {
  return (v16){_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x.a), 23)),
               _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(x.b), 23))};
}
/* vpermps looks at three bits; the fourth comes to be the sign. */
INLINE __m256 pick8(const float *table, __m256 x) {
  __m256i bits = _mm256_castps_si256(x), i = _mm256_srli_epi32(bits, 20);
  __m256 low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), i),
         high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(table + 8), i);
  return _mm256_blendv_ps(low, high, _mm256_castsi256_ps(_mm256_slli_epi32(bits, 8)));
}
INLINE v16 vpick(const float *table, v16 x) { return (v16){pick8(table, x.a), pick8(table, x.b)}; }

/* Lanes i and i + 8, i + 4, i + 2, i + 1. */
#define REDUCE(x, by8, by4)                                               \
  __m256 h = by8(x.a, x.b);                                               \
  __m128 q = by4(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1)); \
  q = by4(q, _mm_movehl_ps(q, q));                                        \
  return _mm_cvtss_f32(by4(q, _mm_movehdup_ps(q)))
INLINE float vsum(v16 x) { REDUCE(x, _mm256_add_ps, _mm_add_ps); }
INLINE float vleast(v16 x) { REDUCE(x, _mm256_min_ps, _mm_min_ps); }
INLINE float vgreatest(v16 x) { REDUCE(x, _mm256_max_ps, _mm_max_ps); }
#undef REDUCE

INLINE v16i visplat(int32_t x) { return (v16i){_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
INLINE v16i viload(const int32_t *p, int n) {
  if (n == 16)
    return (v16i){_mm256_loadu_si256((const __m256i *)(const void *)p),
                  _mm256_loadu_si256((const __m256i *)(const void *)(p + 8))};
  return (v16i){_mm256_maskload_epi32(p, lanes_a(n)), _mm256_maskload_epi32(p + 8, lanes_b(n))};
}
INLINE v16i viadd(v16i x, v16i y) { return (v16i){_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
INLINE v16i visub(v16i x, v16i y) { return (v16i){_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
INLINE v16i vimul(v16i x, v16i y) { return (v16i){_mm256_mullo_epi32(x.a, y.a), _mm256_mullo_epi32(x.b, y.b)}; }
INLINE v16i vimax(v16i x, v16i y) { return (v16i){_mm256_max_epi32(x.a, y.a), _mm256_max_epi32(x.b, y.b)}; }
INLINE v16i vifirst(v16i x, v16i y, int n) {
  return (v16i){_mm256_blendv_epi8(y.a, x.a, lanes_a(n)), _mm256_blendv_epi8(y.b, x.b, lanes_b(n))};
}
#define REDUCE(x, by8, by4)                                                   \
  __m256i h = by8(x.a, x.b);                                                  \
  __m128i q = by4(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1)); \
  q = by4(q, _mm_shuffle_epi32(q, 0x4e));                                     \
  return _mm_cvtsi128_si32(by4(q, _mm_shuffle_epi32(q, 0xb1)))
INLINE int32_t visum(v16i x) { REDUCE(x, _mm256_add_epi32, _mm_add_epi32); }
INLINE int32_t vigreatest(v16i x) { REDUCE(x, _mm256_max_epi32, _mm_max_epi32); }
#undef REDUCE
INLINE v16 vfloat(v16i x) { return (v16){_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
INLINE v16i vround(v16 x) { return (v16i){_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
INLINE void vstore_u8(uint8_t *p, v16i x, int n) {
  __m256i h = _mm256_permute4x64_epi64(_mm256_packus_epi32(x.a, x.b), 0xd8);
  __m128i q = _mm_packus_epi16(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
  if (n == 16)
    _mm_storeu_si128((__m128i *)(void *)p, q);
  else
    memcpy(p, &q, (size_t)n);
}

/* Four columns of eight rows at a time: lane group g of t[j] holds row 4 g + j, so that two 4 by 4 transpositions in the lanes
 * give whole columns. */
INLINE void vtranspose(float *to, int64_t ldto, const float *from, int64_t ldfrom) {
  for (int r = 0; r < 16; r += 8)
    for (int c = 0; c < 16; c += 4) {
      __m256 t[4];
      for (int j = 0; j < 4; j++) {
        const float *p = from + (r + j) * ldfrom + c;
        t[j] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), _mm_loadu_ps(p + 4 * ldfrom), 1);
      }
      __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(t[0], t[1])), b = _mm256_castps_pd(_mm256_unpacklo_ps(t[2], t[3]));
      __m256d d = _mm256_castps_pd(_mm256_unpackhi_ps(t[0], t[1])), e = _mm256_castps_pd(_mm256_unpackhi_ps(t[2], t[3]));
      float *column = to + c * ldto + r;
      _mm256_storeu_ps(column, _mm256_castpd_ps(_mm256_unpacklo_pd(a, b)));
      _mm256_storeu_ps(column + ldto, _mm256_castpd_ps(_mm256_unpackhi_pd(a, b)));
      _mm256_storeu_ps(column + 2 * ldto, _mm256_castpd_ps(_mm256_unpacklo_pd(d, e)));
      _mm256_storeu_ps(column + 3 * ldto, _mm256_castpd_ps(_mm256_unpackhi_pd(d, e)));
    }
}
