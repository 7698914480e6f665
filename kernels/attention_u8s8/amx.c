/* INT8 attention for amx: products on tiles, the rest as on avx512vnni; short sequences and few queries as avx512vnni has them. */
#include "kernels/gemm_u8s8/amx_tiles.h"
#include "kernels/rows/v16_avx512.h"

#include "kernels/rows/functions.h"
#include "scratch.h"

#include "lanes_avx512.h"

#include "head.h"

#include "tiles_amx.h"

/* Measured on an Intel Granite Rapids, one core: with tiles 0.78 of the time at S 64, D 64 and 0.93 at D 32, but 1.02 at S 32, D 64
 * and 1.33 at D 32. Fewer queries than a block would leave a tile's rows empty. */
static int tiles_are_faster(const attention_u8s8 *a, int64_t queries) {
  return queries >= BLOCK && (a->S >= 64 || (a->S >= 48 && a->D >= 64));
}

void attention_u8s8_amx(const attention_u8s8 *a, int64_t q0, int64_t q1, void *scratch) {
  if (tiles_are_faster(a, q1 - q0))
    attend(a, q0, q1, scratch);
  else
    attention_u8s8_avx512vnni(a, q0, q1, scratch);
}
