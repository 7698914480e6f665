/* gemm_bf16.c: multiplies rows by panels of BF16 weights.
 *
 * The rows are rounded to BF16 in the scratch memory of the thread, up to max_rows of them at a time, and then multiplied by all
 * panels. Panels come in groups that stay in the second-level cache while one tile of rows after another is multiplied by them.
 */
#include "kernels/gemm_bf16/layout.h"
#include "engine/base/numbers.h"
#include "gemm_driver.h"

enum { ROUNDED_BYTES = 512 << 10, GROUP_BYTES_BF16 = 512 << 10 };

static int64_t padded_row(const pgee_packed *w) { return round_up(w->K, BF16_BLOCK_K); }

/* How many rows are rounded at a time: as many as ROUNDED_BYTES holds, and at least a tile. */
static int64_t max_rows(const pgee_packed *w) {
  int64_t tiles = ROUNDED_BYTES / (padded_row(w) * 2 * MAX_TILE_M);
  return (tiles > 1 ? tiles : 1) * MAX_TILE_M;
}

int64_t gemm_bf16_scratch(const pgee_packed *w) { return max_rows(w) * padded_row(w) * (int64_t)sizeof(uint16_t); }

typedef struct part {
  int64_t row, row_end, panel, panel_end;
} part;

/* Multiplies rows that are rounded already by a group of panels. configured: the number of rows that the tile registers are configured
 * for. Returns the new number. */
static int multiply_group(const pgee_linear_args *a, const context *c, const epilogue *e, part p, int configured) {
  _Alignas(64) float sums[MAX_TILE_M * PANEL];
  const pgee_packed *w = a->w;
  int64_t ld = padded_row(w);
  for (int64_t t = p.row; t < p.row_end; t += MAX_TILE_M) {
    const uint16_t *x = (const uint16_t *)(void *)c->scratch + (t - p.row) * ld;
    int m = (int)least(MAX_TILE_M, p.row_end - t);
    if (c->k->configure_tiles && configured != m)
      c->k->configure_tiles(configured = m);
    for (int64_t panel = p.panel; panel < p.panel_end; panel++) {
      int64_t n0 = panel * PANEL;
      const void *b = w->bytes + panel * w->panel_bytes;
      c->k->gemm_bf16(sums, x, ld, b, ld / BF16_BLOCK_K, m);
      c->k->epilogue_f32(e, sums, PANEL, t, m, n0, (int)least(PANEL, w->N - n0));
    }
  }
  return configured;
}

static void multiply_rows(const pgee_linear_args *a, const context *c, const epilogue *e, part p) {
  const pgee_packed *w = a->w;
  uint16_t *rounded = (uint16_t *)(void *)c->scratch;
  int64_t ld = padded_row(w), group = GROUP_BYTES_BF16 / w->panel_bytes, end = p.panel_end;
  group = group > 1 ? group : 1;
  for (int64_t t = p.row; t < p.row_end; t++)
    c->k->round_bf16(rounded + (t - p.row) * ld, tensor_floats(a->x) + t * a->x->stride, w->K, ld);
  int configured = 0;
  for (; p.panel < end; p.panel = p.panel_end) {
    p.panel_end = least(p.panel + group, end);
    configured = multiply_group(a, c, e, p, configured);
  }
  if (configured)
    c->k->release_tiles();
}

void gemm_bf16_rectangle(const pgee_linear_args *a, const context *c, const epilogue *e, int64_t row, int64_t row_end,
                         int64_t panel, int64_t panel_end) {
  int64_t rows = max_rows(a->w);
  for (; row < row_end && panel < panel_end; row += rows)
    multiply_rows(a, c, e, (part){row, least(row + rows, row_end), panel, panel_end});
}
