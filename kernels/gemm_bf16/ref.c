/* The portable reference of gemm_bf16 and round_bf16. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "arithmetic.h"
#include "kernels/list.h"
#include "layout.h"
#include "round.h"

/* The sums of one row and one block: the chain of the first inputs of all pairs plus that of the second inputs. */
static void add_block(float *c, const uint16_t *a, const uint16_t *b) {
  for (int n = 0; n < PANEL; n++) {
    float first = 0, second = 0;
    for (int pair = 0; pair < 16; pair++) {
      const uint16_t *w = b + pair * BF16_PAIR + 2 * n;
      first = bf16_fma(a[2 * pair], w[0], first);
      second = bf16_fma(a[2 * pair + 1], w[1], second);
    }
    c[n] = bf16_add(c[n], bf16_add(first, second));
  }
}

void gemm_bf16_ref(float *c, const uint16_t *a, int64_t lda, const uint16_t *b, int64_t kblocks, int m) {
  for (int i = 0; i < m; i++) {
    memset(c + i * PANEL, 0, PANEL * sizeof *c);
    for (int64_t block = 0; block < kblocks; block++)
      add_block(c + i * PANEL, a + i * lda + block * BF16_BLOCK_K, b + block * BF16_BLOCK);
  }
}

void round_bf16_ref(uint16_t *to, const float *x, int64_t width, int64_t padded) { round_row(to, x, width, padded); }
