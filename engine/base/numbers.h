/* numbers.h: small functions on numbers that several files of the engine need. They have no prefix. They use no libm, so that
 * every machine gives the same bits. */
#ifndef PERIGEE_NUMBERS_H
#define PERIGEE_NUMBERS_H
#include <stdint.h>
#include <string.h>

static inline uint32_t float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* The highest bit of the result is set if x is NaN or infinite, so that a loop can combine many results by "or". */
static inline uint32_t nonfinite_bit(float x) { return (float_bits(x) & 0x7fffffffu) + 0x00800000u; }
static inline int is_nonfinite(float x) { return nonfinite_bit(x) >> 31; }

static inline const char *nonfinite_name(float x) { return x != x ? "NaN" : x > 0 ? "infinite" : "minus infinite"; }

/* A float whose exponent is neither that of zero and denormals nor that of infinity and NaN. */
static inline int is_normal(float x) {
  uint32_t exponent = float_bits(x) >> 23 & 255;
  return exponent > 0 && exponent < 255;
}

static inline float magnitude(float x) {
  uint32_t bits = float_bits(x) & 0x7fffffffu;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* To the nearest integer, ties to even, for |x| up to 2^22: adding 1.5 * 2^23 leaves no bits for a fraction. */
static inline float round_even(float x) { return (x + 12582912.0f) - 12582912.0f; }

/* The scale, or 1 if the scale or its reciprocal is not a normal float. */
static inline float usable_scale(float scale) { return is_normal(scale) && is_normal(1.0f / scale) ? scale : 1.0f; }

static inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }
static inline int64_t divide_up(int64_t n, int64_t by) { return (n + by - 1) / by; }
static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

#endif
