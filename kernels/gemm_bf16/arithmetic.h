/* arithmetic.h: the two operations of tdpbf16ps on single numbers, in portable C.
 *
 * Source: the Operation section of TDPBF16PS in the Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2. All
 * operations round to nearest, ties to even. A denormal operand counts as zero (DAZ), and a result that is tiny becomes zero (FTZ);
 * the zero has the sign of the number. Like all of Intel's float instructions, these test whether a result is tiny after rounding.
 */
#ifndef PERIGEE_GEMM_BF16_ARITHMETIC_H
#define PERIGEE_GEMM_BF16_ARITHMETIC_H
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* The float of a BF16 number. Denormal numbers become zero. */
static inline float bf16_widened(uint16_t x) {
  uint32_t bits = (uint32_t)(x & 0x7f80 ? x : x & 0x8000) << 16;
  float widened;
  memcpy(&widened, &bits, sizeof widened);
  return widened;
}

static inline float bf16_flushed(float x) { return fabsf(x) < FLT_MIN ? copysignf(0, x) : x; }

/* x + y. A sum below FLT_MIN is exact, so rounding does not change whether it is tiny. */
static inline float bf16_add(float x, float y) { return bf16_flushed(bf16_flushed(x) + bf16_flushed(y)); }

/* x y + sum with one rounding. Numbers from FLT_MIN - 2^-150 to FLT_MIN - 2^-151 need care: with 24 bits they round to a number below
 * FLT_MIN, which is tiny, but fmaf, whose results may be denormal, rounds them to FLT_MIN. There the sum in double is exact. */
static inline float bf16_fma(uint16_t x, uint16_t y, float sum) {
  float a = bf16_widened(x), b = bf16_widened(y), result = fmaf(a, b, sum);
  if (fabsf(result) == FLT_MIN && fabs((double)a * b + sum) < 0x1p-126 - 0x1p-151)
    return copysignf(0, result);
  return bf16_flushed(result);
}

#endif
