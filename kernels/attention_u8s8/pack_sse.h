/* pack_sse.h: 16 channels of keys and of values into the panels' layout, 16 bytes at a time; for all but the reference. */
#include <immintrin.h>

INLINE __m128i pack_load(const uint8_t *p) {
  return _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)p), _mm_set1_epi8(-128)); /* u8 - 128 as s8 */
}
INLINE void pack_store(int8_t *p, __m128i x) { _mm_store_si128((__m128i *)(void *)p, x); }

/* Four keys at a time: a transposition of 4 by 4 quads of channels. */
INLINE void pack_keys16(int8_t *to, const uint8_t *from, int64_t ld) {
  for (int s = 0; s < 16; s += 4, from += 4 * ld, to += 16) {
    __m128i a = pack_load(from), b = pack_load(from + ld), c = pack_load(from + 2 * ld), d = pack_load(from + 3 * ld);
    __m128i ab = _mm_unpacklo_epi32(a, b), cd = _mm_unpacklo_epi32(c, d);
    pack_store(to, _mm_unpacklo_epi64(ab, cd));
    pack_store(to + GROUP, _mm_unpackhi_epi64(ab, cd));
    ab = _mm_unpackhi_epi32(a, b), cd = _mm_unpackhi_epi32(c, d);
    pack_store(to + 2 * GROUP, _mm_unpacklo_epi64(ab, cd));
    pack_store(to + 3 * GROUP, _mm_unpackhi_epi64(ab, cd));
  }
}

INLINE void pack_values16(int8_t *to, const uint8_t *from, int64_t ld) {
  for (int s = 0; s < 16; s += 4, from += 4 * ld, to += GROUP) {
    __m128i a = pack_load(from), b = pack_load(from + ld), c = pack_load(from + 2 * ld), d = pack_load(from + 3 * ld);
    __m128i ab = _mm_unpacklo_epi8(a, b), cd = _mm_unpacklo_epi8(c, d);
    pack_store(to, _mm_unpacklo_epi16(ab, cd));
    pack_store(to + 16, _mm_unpackhi_epi16(ab, cd));
    ab = _mm_unpackhi_epi8(a, b), cd = _mm_unpackhi_epi8(c, d);
    pack_store(to + 32, _mm_unpacklo_epi16(ab, cd));
    pack_store(to + 48, _mm_unpackhi_epi16(ab, cd));
  }
}
