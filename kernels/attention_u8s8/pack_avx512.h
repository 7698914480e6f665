/* pack_avx512.h: 16 channels of 16 keys or values into the panels' layout, 64 bytes at a time. */

/* Four rows of 16 bytes, u8 - 128 as s8. */
INLINE __m512i pack_four(const uint8_t *p, int64_t ld) {
  __m512i x = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)(const void *)p));
  x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(p + ld)), 1);
  x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(p + 2 * ld)), 2);
  x = _mm512_inserti32x4(x, _mm_loadu_si128((const __m128i *)(const void *)(p + 3 * ld)), 3);
  return _mm512_xor_si512(x, _mm512_set1_epi8(-128));
}

/* Rows i, i + 4, i + 8 and i + 12 as the lanes of one: what is done in a lane is done to four rows that follow each other. */
#define ROWS                                                             \
  __m512i a = pack_four(from, 4 * ld), b = pack_four(from + ld, 4 * ld); \
  __m512i c = pack_four(from + 2 * ld, 4 * ld), d = pack_four(from + 3 * ld, 4 * ld)

/* A transposition of 4 by 4 quads of channels. */
INLINE void pack_keys16(int8_t *to, const uint8_t *from, int64_t ld) {
  ROWS;
  __m512i ab = _mm512_unpacklo_epi32(a, b), cd = _mm512_unpacklo_epi32(c, d);
  _mm512_store_si512(to, _mm512_unpacklo_epi64(ab, cd));
  _mm512_store_si512(to + GROUP, _mm512_unpackhi_epi64(ab, cd));
  ab = _mm512_unpackhi_epi32(a, b), cd = _mm512_unpackhi_epi32(c, d);
  _mm512_store_si512(to + 2 * GROUP, _mm512_unpacklo_epi64(ab, cd));
  _mm512_store_si512(to + 3 * GROUP, _mm512_unpackhi_epi64(ab, cd));
}

/* Each lane's 4 by 16 bytes, columns first, are four quarters of a group; then the lanes are put in order. */
INLINE void pack_values16(int8_t *to, const uint8_t *from, int64_t ld) {
  ROWS;
  __m512i ab = _mm512_unpacklo_epi8(a, b), cd = _mm512_unpacklo_epi8(c, d);
  __m512i x = _mm512_unpacklo_epi16(ab, cd), y = _mm512_unpackhi_epi16(ab, cd);
  ab = _mm512_unpackhi_epi8(a, b), cd = _mm512_unpackhi_epi8(c, d);
  __m512i z = _mm512_unpacklo_epi16(ab, cd), w = _mm512_unpackhi_epi16(ab, cd);
  __m512i xy = _mm512_shuffle_i32x4(x, y, 0x44), zw = _mm512_shuffle_i32x4(z, w, 0x44); /* lanes 0 and 1 of both */
  _mm512_store_si512(to, _mm512_shuffle_i32x4(xy, zw, 0x88));
  _mm512_store_si512(to + GROUP, _mm512_shuffle_i32x4(xy, zw, 0xDD));
  xy = _mm512_shuffle_i32x4(x, y, 0xEE), zw = _mm512_shuffle_i32x4(z, w, 0xEE);
  _mm512_store_si512(to + 2 * GROUP, _mm512_shuffle_i32x4(xy, zw, 0x88));
  _mm512_store_si512(to + 3 * GROUP, _mm512_shuffle_i32x4(xy, zw, 0xDD));
}
#undef ROWS
