/* kernels.c: core cycles of the kernels.
 *
 * The time stamp counter ticks at a fixed rate, the core does not: a chain of dependent additions, one a cycle, tells how many
 * cycles a tick is. (Of registers: newer cores do several additions of constants in one cycle.) Each figure is the best of `tries`, after one call to warm up.
 */
#include <x86intrin.h>

#include "spec/kernels/floats.h"

static double cycles_per_tick(void) {
  double best = 1e30;
  for (int i = 0; i < 200; i++) {
    uint64_t t = __rdtsc();
    __asm__ volatile(".rept 1000\nadd %%rcx, %%rax\n.endr" ::: "rax", "rcx", "cc");
    best = fmin(best, (double)(__rdtsc() - t));
  }
  return 1000 / best;
}

/* cycles = those of one of `calls` calls in a row, the best of `tries`. */
#define MEASURE(calls, code)                         \
  do {                                               \
    double best = 1e30;                              \
    for (int try = 0; try <= tries; try++) {         \
      uint64_t ticks = __rdtsc();                    \
      for (int call = 0; call < (calls); call++)     \
        code;                                        \
      ticks = __rdtsc() - ticks;                     \
      best = try ? fmin(best, (double)ticks) : best; \
    }                                                \
    cycles = best * cycles_per_tick() / (calls);     \
  } while (0)

enum { ROWS = 8 };

/* Billions of cycles a second, now. */
PUBLIC double spec_bench_gigahertz(void) {
  double best = 1e30;
  for (int i = 0; i < 20; i++) {
    double t = pgee_seconds();
    uint64_t ticks = __rdtsc();
    while (pgee_seconds() - t < 1e-4) {
    }
    ticks = __rdtsc() - ticks;
    best = fmin(best, (pgee_seconds() - t) / (double)ticks);
  }
  return cycles_per_tick() / best * 1e-9;
}

/* ---- Products ----------------------------------------------------------------------------------------------------- */

/* Weights to go through so that each try finds others: `megabytes` of them, at least two of `size` bytes; 0: one, used again. */
typedef struct weights {
  char *base;
  int64_t size, room, at;
} weights;

static weights weights_new(int64_t size, int64_t megabytes) {
  weights w = {.size = size, .room = megabytes ? megabytes << 20 : size};
  if (w.room < 2 * size && megabytes)
    w.room = 2 * size;
  w.base = aligned_alloc(64, (size_t)w.room);
  for (int64_t i = 0; i < w.room / 4; i++)
    ((float *)w.base)[i] = 0.3f;
  return w;
}

static const char *weights_next(weights *w) {
  const char *b = w->base + w->at;
  w->at = w->at + 2 * w->size <= w->room ? w->at + w->size : 0;
  return b;
}

/* [rows][K] times `panels` panels of u8 x s8 (K a multiple of 64) or FP32, as the engine does it: panel after panel, for each one
 * tile after tile of rows. */
static void multiply_u8s8(const kernels *k, const uint8_t *a, const int8_t *b, int64_t rows, int64_t K, int64_t panels) {
  _Alignas(64) int32_t c[MAX_TILE_M * PANEL];
  int64_t tiles = (rows + k->tile_m - 1) / k->tile_m, configured = 0;
  for (int64_t p = 0; p < panels; p++, b += K * PANEL)
    for (int64_t i = 0; i < tiles; i++) {
      int64_t first = rows * i / tiles, last = rows * (i + 1) / tiles;
      if (k->configure_tiles && configured != last - first)
        k->configure_tiles((int)(configured = last - first));
      int64_t step = p + 1 < panels ? (4 * PANEL + tiles - 1) / tiles : 0;
      prefetch next = {b + (step ? K * PANEL + K / 4 * step * i : 0), step < MAX_PREFETCH ? step : MAX_PREFETCH};
      k->gemm_u8s8(c, a + first * K, K, b, K / 64, (int)(last - first), next);
    }
  if (k->release_tiles)
    k->release_tiles();
}

static void multiply_f32(const kernels *k, const float *a, const float *b, int64_t rows, int64_t K, int64_t panels) {
  _Alignas(64) float c[MAX_TILE_M * PANEL];
  int64_t tiles = (rows + k->tile_m_f32 - 1) / k->tile_m_f32;
  for (int64_t p = 0; p < panels; p++, b += K * PANEL)
    for (int64_t i = 0; i < tiles; i++) {
      int64_t first = rows * i / tiles, last = rows * (i + 1) / tiles;
      const float *next = p + 1 < panels && i < 4 ? b + K * PANEL + i * K * PANEL / 4 : NULL;
      k->gemm_f32(c, PANEL, a + first * K, K, b, PANEL, K, (int)(last - first), PANEL, next);
    }
}

static void multiply_bf16(const kernels *k, const uint16_t *a, const uint16_t *b, int64_t rows, int64_t K, int64_t panels) {
  _Alignas(64) float c[MAX_TILE_M * PANEL];
  int64_t configured = 0;
  for (int64_t p = 0; p < panels; p++, b += K * PANEL)
    for (int64_t i = 0, m; i < rows; i += m) {
      m = rows - i < MAX_TILE_M ? rows - i : MAX_TILE_M;
      if (k->configure_tiles && configured != m)
        k->configure_tiles((int)(configured = m));
      k->gemm_bf16(c, a + i * K, K, b, K / 32, (int)m);
    }
  if (k->release_tiles)
    k->release_tiles();
}

PUBLIC double spec_bench_gemm_u8s8(int isa, int64_t rows, int64_t K, int64_t panels, int64_t megabytes, int tries) {
  weights b = weights_new(panels * K * PANEL, megabytes);
  block a = block_bytes(rows * K);
  double cycles;
  MEASURE(1, multiply_u8s8(kernels_for(isa), a.u, (const int8_t *)weights_next(&b), rows, K, panels));
  block_free(a), free(b.base);
  return cycles;
}

PUBLIC double spec_bench_gemm_f32(int isa, int64_t rows, int64_t K, int64_t panels, int64_t megabytes, int tries) {
  weights b = weights_new(panels * K * PANEL * 4, megabytes);
  block a = block_filled(rows * K, ORDINARY, 1);
  double cycles;
  MEASURE(1, multiply_f32(kernels_for(isa), a.f, (const float *)weights_next(&b), rows, K, panels));
  block_free(a), free(b.base);
  return cycles;
}

PUBLIC double spec_bench_gemm_bf16(int isa, int64_t rows, int64_t K, int64_t panels, int64_t megabytes, int tries) {
  weights b = weights_new(panels * K * PANEL * 2, megabytes);
  block a = block_filled(rows * K / 2, CONSTANT, 1); /* the lower half of each float is a BF16 number, too */
  double cycles;
  MEASURE(1, multiply_bf16(kernels_for(isa), a.data, (const uint16_t *)(const void *)weights_next(&b), rows, K, panels));
  block_free(a), free(b.base);
  return cycles;
}

/* ---- What goes with them ------------------------------------------------------------------------------------------ */

/* The epilogue of a tile of 6 by 64. If K is not 0: what it adds to a product of that depth that it overlaps with; the panel is in the
 * cache. */
PUBLIC double spec_bench_epilogue(int isa, int integer, int activation, int per_row, int quantized, int64_t K, int tries) {
  const kernels *k = kernels_for(isa);
  block c = block_filled(384, ORDINARY, 1), v = block_filled(64, ORDINARY, 2), rows = block_filled(6, ORDINARY, 3);
  _Alignas(64) float y[384];
  _Alignas(64) uint8_t q[384];
  int32_t sums[64] = {0}, zeros[6] = {0};
  epilogue e = {.scale = v.f,
                .bias = v.f,
                .wsum = sums,
                .activation = activation,
                .ldy = 64,
                .ldq = 64,
                .q_mul = v.f,
                .q_lo = -100,
                .q_hi = 155,
                .q_zero = 100};
  e.row_scale = per_row ? rows.f : NULL, e.row_zero = per_row ? zeros : NULL;
  e.y = quantized ? NULL : y, e.q = quantized ? q : NULL;
  double cycles;
  for (int i = 0; i < 384 && integer; i++)
    c.i[i] = i - 192;
  if (K > 0 && k->gemm_u8s8_overlapped) {
    weights b = weights_new(K * PANEL, 0);
    block a = block_bytes(6 * K);
    _Alignas(64) int32_t product[6 * PANEL];
    const int8_t *panel = (const int8_t *)b.base;
    panel_constants of_panel;
    pending_tile p = {.e = &e, .c = c.i, .m = 6, .n = PANEL, .panel = &of_panel};
    k->prepare_panel(&of_panel, &e, 0);
    MEASURE(20, k->gemm_u8s8(product, a.u, K, panel, K / 64, 6, (prefetch){panel, 0}));
    double alone = cycles;
    MEASURE(20, k->gemm_u8s8_overlapped(product, a.u, K, panel, K / 64, 6, (prefetch){panel, 0}, &p));
    cycles -= alone;
    block_free(a), free(b.base);
  } else if (integer)
    MEASURE(50, k->epilogue_s32(&e, c.i, 64, 0, 6, 0, 64));
  else
    MEASURE(50, k->epilogue_f32(&e, c.f, 64, 0, 6, 0, 64));
  block_free(c), block_free(v), block_free(rows);
  return cycles;
}

/* What the row operators read and write. */
typedef struct row_buffers {
  block x, residual, v, min, y, q;
  float scales[ROWS], ranges[2 * ROWS];
  int32_t zeros[ROWS];
} row_buffers;

static void embed_row(const kernels *k, const row_buffers *b, int t, int64_t width) {
  table_row word = {b->x.f + t * width, PGEE_F32, 0}, position = {b->residual.f, PGEE_F32, 0}, type = {b->v.f, PGEE_F32, 0};
  k->embed(b->y.f + t * width, &word, &position, &type, width);
}

static double cycles_of_rows(const kernels *k, const char *op, row_buffers *b, int64_t width, int mode, int tries) {
  quantizer z = {.mode = mode,
                 .mul = b->v.f,
                 .zero = 100,
                 .lo = -100,
                 .hi = 155,
                 .q = b->q.u,
                 .ldq = width,
                 .row_scale = b->scales,
                 .row_zero = b->zeros};
  norm a = {.x = b->x.f,
            .residual = b->residual.f,
            .ldx = width,
            .ld_residual = width,
            .gamma = b->v.f,
            .beta = b->v.f,
            .eps = 1e-12f,
            .width = width,
            .y = b->y.f,
            .ldy = width,
            .quantize = z};
  double cycles = 0;
  if (!strcmp(op, "norm"))
    MEASURE(2, k->norm(&a, 0, ROWS));
  else if (!strcmp(op, "quantize"))
    MEASURE(2, k->quantize(&z, b->x.f, width, width, 0, ROWS));
  else if (!strcmp(op, "range"))
    MEASURE(2, k->range(b->ranges, b->x.f, width, b->v.f, width, 0, ROWS));
  else if (!strcmp(op, "embed"))
    MEASURE(2, for (int t = 0; t < ROWS; t++) embed_row(k, b, t, width));
  else if (!strcmp(op, "pool"))
    MEASURE(2, k->pool(b->y.f, b->x.f, width, ROWS, width, mode));
  else if (!strcmp(op, "unit"))
    MEASURE(2, for (int t = 0; t < ROWS; t++) k->unit(b->y.f + t * width, b->x.f + t * width, width));
  else if (!strcmp(op, "round_bf16"))
    MEASURE(2, for (int t = 0; t < ROWS; t++) k->round_bf16(b->y.data, b->x.f + t * width, width, width));
  else if (!strcmp(op, "minmax"))
    MEASURE(2, k->minmax(b->min.f, b->y.f, b->x.f, width, ROWS, width));
  return cycles;
}

/* Cycles for one row of `width` values, of eight, by the row operator named `op`; 0 for another name. mode: QUANTIZE_STATIC or
 * QUANTIZE_DYNAMIC, or how pool pools. norm adds a residual first. */
PUBLIC double spec_bench_rows(int isa, const char *op, int64_t width, int mode, int tries) {
  row_buffers b = {.x = block_filled(ROWS * width, ORDINARY, 1),
                   .residual = block_filled(ROWS * width, ORDINARY, 2),
                   .v = block_filled(width, ORDINARY, 3),
                   .min = block_new(width),
                   .y = block_new(ROWS * width),
                   .q = block_bytes(ROWS * width)};
  double cycles = cycles_of_rows(kernels_for(isa), op, &b, width, mode, tries);
  block_free(b.x), block_free(b.residual), block_free(b.v), block_free(b.min), block_free(b.y), block_free(b.q);
  return cycles / ROWS;
}

/* One head of `heads` side by side, Q, K and V in rows of 3 * heads * D. */
PUBLIC double spec_bench_attention_f32(int isa, int64_t S, int64_t D, int64_t heads, int tries) {
  int64_t H = heads * D;
  block x = block_filled(S * 3 * H, ORDINARY, 1), y = block_new(S * H),
        scratch = block_new((attention_scratch(S, D) + 15) / 16 * 16);
  attention a = {.q = x.f, .k = x.f + H, .v = x.f + 2 * H, .ld = 3 * H, .S = S, .D = D, .scale = 0.125f, .y = y.f, .ldy = H};
  double cycles;
  MEASURE(1, kernels_for(isa)->attention_f32(&a, 0, S, scratch.f));
  block_free(x), block_free(y), block_free(scratch);
  return cycles;
}

/* The same in INT8. */
PUBLIC double spec_bench_attention_u8s8(int isa, int64_t S, int64_t D, int64_t heads, int tries) {
  int64_t H = heads * D, ld = (3 * H + 63) / 64 * 64;
  block x = block_bytes(S * ld), y = block_new(S * H), scratch = block_bytes(attention_u8s8_scratch(S, D));
  uint32_t seed = 1;
  for (int64_t i = 0; i < S * ld; i++)
    x.u[i] = (uint8_t)(1 + draw(&seed) % 255);
  attention_u8s8 a = {
      .q = x.u, .k = x.u + H, .v = x.u + 2 * H, .ld = ld, .S = S, .D = D, .scale = 1e-5f, .v_scale = 0.01f, .y = y.f, .ldy = H};
  double cycles;
  MEASURE(1, kernels_for(isa)->attention_u8s8(&a, 0, S, scratch.data));
  block_free(x), block_free(y), block_free(scratch);
  return cycles;
}
