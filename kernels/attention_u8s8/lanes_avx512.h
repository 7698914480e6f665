/* lanes_avx512.h: what body.h asks for beside tiles, for AVX-512. */
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
