/* gemm_bf16.c: one call of a gemm_bf16 or round_bf16 kernel against an oracle that knows no layout. Operands end at a page without
 * access, and guard rows follow c. */
#include <float.h>

#include "floats.h"
#include "kernels/gemm_bf16/layout.h"
#include "kernels/gemm_u8s8/amx_model.h"

/* Besides those of floats.h. BORDER: sums next to the smallest normal float, where a result may or may not be tiny. */
enum { BORDER = 5 };
enum { GUARD = 2 };

static uint16_t upper_half(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bf16_of_bits(bits);
}

static float widened(uint16_t x) {
  uint32_t bits = (uint32_t)x << 16;
  float y;
  memcpy(&y, &bits, sizeof y);
  return fabsf(y) < FLT_MIN ? copysignf(0, y) : y;
}

/* Inputs k = 0 give 2^-126, inputs k = 2 subtract something from 2^-153 to 2^-150 of it. */
static float border(int weight, int64_t line, int64_t k) {
  if (k == 0)
    return 0x1p-63f;
  if (k != 2)
    return 0;
  return weight ? -ldexpf(1 + (float)line / 64, -75) : ldexpf(1, -76 - (int)(line % 3));
}

static uint16_t number(int fill, int weight, int64_t line, int64_t k, uint32_t *seed) {
  return upper_half(fill == BORDER ? border(weight, line, k) : value(fill, seed));
}

/* The larger of the two exponents of a float and the double that it should be: double is wide enough for BORDER's sums. */
static float flushed(double exact, float rounded) {
  int tiny = fabs(exact) < 0x1p-126 - 0x1p-151;
  return tiny || fabsf(rounded) < FLT_MIN ? copysignf(0, rounded) : rounded;
}

static float expected(const uint16_t *x, const uint16_t *w, int64_t K) {
  float sum = 0;
  for (int64_t from = 0; from < K; from += 32) {
    float chain[2] = {0, 0};
    for (int64_t k = from; k < from + 32 && k < K; k++) {
      float a = widened(x[k]), b = widened(w[k]), *c = &chain[k % 2];
      *c = flushed((double)a * b + *c, fmaf(a, b, *c));
    }
    if (K % 2 && from + 32 > K)
      chain[1] = chain[1] + 0.0f; /* the zero that follows an odd K makes +0 of -0 */
    float both = chain[0] + chain[1];
    both = flushed(both, both);
    sum = flushed((double)sum + both, sum + both);
  }
  return sum;
}

/* Fills K numbers of each line; those up to `ld` are zeros. */
static void fill_lines(uint16_t *to, int lines, int64_t K, int64_t ld, int fill, int weight, uint32_t seed) {
  for (int i = 0; i < lines; i++)
    for (int64_t k = 0; k < ld; k++)
      to[i * ld + k] = k < K ? number(fill, weight, i, k, &seed) : 0;
}

static int compare(const float *c, const uint16_t *x, int64_t lda, const uint16_t *w, int m, int64_t K, char *why,
                   int64_t bytes) {
  for (int i = 0; i < m + GUARD; i++)
    for (int n = 0; n < PANEL; n++) {
      uint32_t got, want = UNTOUCHED;
      float sum = i < m ? expected(x + i * lda, w + n * K, K) : 0;
      memcpy(&got, c + i * PANEL + n, sizeof got);
      if (i < m)
        memcpy(&want, &sum, sizeof want);
      if (!same_float(got, want) && got != want)
        return snprintf(why, (size_t)bytes, "row %d, channel %d: 0x%08x, expected 0x%08x", i, n, got, want), 0;
    }
  return 1;
}

/* 1 if c [m][64] is right to the last bit and nothing else was written. corrupt: one weight of the oracle is changed. */
PUBLIC int spec_gemm_bf16(int isa, int m, int64_t K, int64_t gap, int fill, uint32_t seed, int corrupt, char *why,
                          int64_t bytes) {
  int64_t kblocks = (K + 31) / 32, lda = kblocks * 32 + gap;
  block a = block_bytes(2 * (m * lda - gap)), b = block_bytes(2 * kblocks * BF16_BLOCK), c = block_new((m + GUARD) * PANEL);
  uint16_t *x = calloc((size_t)(m * lda), sizeof *x), *w = calloc((size_t)(PANEL * K), sizeof *w), *packed = b.data;
  fill_lines(x, m, K, lda, fill, 0, seed);
  fill_lines(w, PANEL, K, K, fill, 1, seed + 1);
  memcpy(a.data, x, (size_t)(m * lda - gap) * sizeof *x);
  memset(b.data, 0, (size_t)(kblocks * BF16_BLOCK) * sizeof *packed);
  for (int64_t n = 0; n < PANEL; n++)
    for (int64_t k = 0; k < K; k++)
      packed[bf16_index(n, k, kblocks)] = w[n * K + k];
  const kernels *k = kernels_for(isa);
  if (k->configure_tiles)
    k->configure_tiles(m);
  k->gemm_bf16(c.f, a.data, lda, packed, kblocks, m);
  if (k->release_tiles)
    k->release_tiles();
  if (corrupt)
    w[(PANEL - 1) * K + K - 1] ^= 0x80; /* the last bits might be lost in the sum */
  int ok = compare(c.f, x, lda, w, m, K, why, bytes);
  const char *fault = model_fault();
  if (fault)
    ok = (snprintf(why, (size_t)bytes, "%s", fault), 0);
  free(x), free(w);
  block_free(a), block_free(b), block_free(c);
  return ok;
}

/* How many of 64 channels of two rows with the fill BORDER are zeros, by the oracle. */
PUBLIC int spec_gemm_bf16_zeros(void) {
  uint16_t x[2 * 32], w[PANEL * 32];
  int zeros = 0;
  fill_lines(x, 2, 32, 32, BORDER, 0, 1);
  fill_lines(w, PANEL, 32, 32, BORDER, 1, 1);
  for (int i = 0; i < 2 * PANEL; i++)
    zeros += expected(x + i % 2 * 32, w + i / 2 * 32, 32) == 0;
  return zeros;
}

/* The double nearest to a float, to 8 bits, ties to even; the next power of two past the largest number stands for infinity. */
static double nearest_bf16(float x) {
  int exponent;
  frexp(x, &exponent);
  double unit = ldexp(1, (exponent < -125 ? -125 : exponent) - 8);
  return nearbyint(x / unit) * unit;
}

/* Whether a kernel rounds `width` floats right, and writes zeros up to `padded`, and nothing past it. */
PUBLIC int spec_round_bf16(int isa, int64_t width, int64_t padded, int fill, uint32_t seed, char *why, int64_t bytes) {
  block x = block_filled(width, fill, seed), to = block_bytes(2 * padded);
  for (int64_t k = 0; fill == ORDINARY && k < width; k += 3)
    x.bits[k] = (x.bits[k] & 0xffff0000) | 0x8000; /* ties */
  uint16_t *got = to.data;
  kernels_for(isa)->round_bf16(got, x.f, width, padded);
  int ok = 1;
  for (int64_t k = 0; k < padded && ok; k++) {
    uint32_t bits = (uint32_t)got[k] << 16;
    float y, from = k < width ? x.f[k] : 0;
    memcpy(&y, &bits, sizeof y);
    double want = isfinite(from) ? nearest_bf16(from) : from;
    ok = isnan(from) ? isnan(y)
                     : (want >= 0x1p128    ? y == INFINITY
                        : want <= -0x1p128 ? y == -INFINITY
                                           : y == want) &&
                           !signbit(y) == !signbit(from);
    if (!ok)
      snprintf(why, (size_t)bytes, "value %d, %a: %a, expected %a", (int)k, from, y, want);
  }
  block_free(x), block_free(to);
  return ok;
}
