/* INT8 attention for the portable reference. */
#define NAME(f) f##_ref
#include "kernels/rows/v16_ref.h"

#include "kernels/rows/functions.h"
#include "scratch.h"

enum { TILE_M = BLOCK_QUERIES };

static void tile(int32_t *c, int64_t ldc, const int32_t *start, const uint8_t *a, int64_t lda, const int8_t *b, int64_t groups,
                 int m, int columns) {
  for (int i = 0; i < m; i++)
    for (int n = 0; n < 16 * columns; n++) {
      int32_t sum = start[n];
      for (int64_t k = 0; k < 4 * groups; k++)
        sum += a[i * lda + k] * b[k / 4 * GROUP + n * 4 + k % 4];
      c[i * ldc + n] = sum;
    }
}

#include "lanes_ref.h"

#include "head.h"

#include "blocks.h"
