/* gemm_driver.c: multiplies rows by panels of a weight, tile by tile, with software pipelining and prefetching.
 *
 * A tile is up to tile_m rows times one panel of 64 output channels. While one tile is multiplied, the same instruction stream runs
 * the epilogue of the tile before (gemm_u8s8_overlapped) and prefetches weights that come later:
 *
 *   product      | tile 0 | tile 1 | tile 2 | ...             | tile n |
 *   epilogue              | tile 0 | tile 1 | tile 2 | ...             | tile n |    the pending tile of `pipeline`
 *   sums in         c[0]     c[1]     c[0]     ...
 *   prefetch     | next group, an equal part of it with each tile  ... |             see next_of and group_s8
 *
 * The order of the tiles: group after group of panels; in a group one tile of rows after another; for each tile of rows the panels
 * of the group in turn, so that the rows stay in the nearest cache. A group has one panel, or as many as kernels.h's group_bytes holds.
 * ISAs without an overlapped kernel run the pending epilogue before the next product. FP32 runs each epilogue after its product.
 */
#include "gemm_driver.h"

#include "engine/base/numbers.h"
#include "quantizer.h"

epilogue gemm_driver_epilogue(const pgee_linear_args *a) {
  quantizer q = quantizer_lower(&a->quantize);
  return (epilogue){
      .scale = tensor_floats(a->scale),
      .bias = a->bias ? tensor_floats(a->bias) : a->w->zeros,
      .wsum = a->w->sums,
      .zero = a->zero,
      .row_scale = tensor_floats(a->row_scale),
      .row_zero = a->row_zero ? a->row_zero->data : NULL,
      .activation = a->activation,
      .residual = tensor_floats(a->residual),
      .ld_residual = tensor_stride(a->residual),
      .y = tensor_floats(a->y),
      .ldy = tensor_stride(a->y),
      .q = q.q,
      .ldq = q.ldq,
      .q_mul = q.mul,
      .q_add = q.add,
      .q_zero = q.zero,
      .q_lo = q.lo,
      .q_hi = q.hi,
  };
}

/* ---- The parts of the threads ---------------------------------------------------------------------------------------- */

/* The item at which the part of thread `thread` begins: equal shares. If the shares are large, it is rounded to a whole tile. */
static int64_t begin_of(int64_t rows, int64_t panels, int tile_m, int thread, int threads) {
  int64_t all = rows * panels, at = all / threads * thread + all % threads * thread / threads;
  if (all / threads < 20 * tile_m)
    return at;
  int64_t row = (at % rows + tile_m / 2) / tile_m * tile_m;
  return at / rows * rows + least(row, rows);
}

gemm_part gemm_driver_part(const pgee_linear_args *a, const context *c) {
  int tile_m = a->w->dtype == PGEE_S8 ? c->k->tile_m : c->k->tile_m_f32;
  gemm_part p = {.rows = operator_rows(a->x, c)};
  if (p.rows > 0) {
    p.first = begin_of(p.rows, a->w->panels, tile_m, c->thread, c->threads);
    p.last = begin_of(p.rows, a->w->panels, tile_m, c->thread + 1, c->threads);
  }
  return p;
}

weight_span gemm_driver_weights(const pgee_packed *w, gemm_part p) {
  if (p.first == p.last || w->table)
    return (weight_span){0};
  int64_t panel = p.first / p.rows, end = (p.last - 1) / p.rows + 1, piece = w->panel_bytes;
  return (weight_span){w->bytes + panel * piece, (end - panel) * piece, piece};
}

/* ---- The pipeline -------------------------------------------------------------------------------------------------- */

enum { MAX_GROUP = 8 }; /* panels of a group */

/* The state of one thread while it multiplies. It has two tiles of sums, because the epilogue of one runs while the other is multiplied.
 * The core compares only the lowest 12 bits of the addresses of a load and of earlier stores. Therefore `apart` moves the constants of
 * the first panels to other places of a page than those of tiles of 6 rows, which have just been stored. */
typedef struct pipeline {
  _Alignas(4096) int32_t c[2][MAX_TILE_M * PANEL];
  char apart[MAX_TILE_M * 56];
  panel_constants panel[MAX_GROUP][2]; /* of this group and of the group before, whose last tile may be pending */
  int at, panel_at;                    /* the halves in use of c and panel */
  int configured;                      /* rows that the tile registers are configured for; 0: none */
  pending_tile pending;
} pipeline;

/* The large arrays need no initial value. */
static void pipeline_begin(pipeline *s) {
  s->at = s->panel_at = s->configured = 0;
  s->pending = (pending_tile){0};
}

static void run_pending(const pending_tile *p, const kernels *k) {
  if (p->e)
    k->epilogue_s32(p->e, p->c, PANEL, p->t0, p->m, p->n0, p->n);
}

static void flush(pending_tile *p, const kernels *k) {
  if (p->in_tiles)
    k->flush_tiles(p->c, p->m);
  p->in_tiles = 0;
}

/* Runs the last epilogue. The tile registers are released. */
static void pipeline_end(pipeline *s, const kernels *k) {
  flush(&s->pending, k);
  if (s->configured)
    k->release_tiles();
  run_pending(&s->pending, k);
}

static void configure(pipeline *s, const kernels *k, int m) {
  if (!k->configure_tiles || s->configured == m)
    return;
  flush(&s->pending, k);
  k->configure_tiles(s->configured = m);
}

/* The number of tiles for some rows. It is as small as possible, because each tile streams the whole panel, and a short tile does
 * too little arithmetic to hide that. Tiles of tile_max rows are used only if there are at most two, because an epilogue cannot
 * overlap with them. */
static int64_t tiles_for(const kernels *k, int64_t rows) {
  int64_t n = rows / k->tile_m, max = n > 2 ? k->tile_m : k->tile_max;
  return rows > n * max ? n + 1 : n;
}

static void fetch_vector(const void *v, int64_t first, int64_t last) {
  for (int64_t i = first; v && i < last; i += 16)
    __builtin_prefetch((const float *)v + i, 0, 3);
}

/* Prefetches what the epilogues of a panel read. */
static void fetch_vectors(const pgee_linear_args *a, int64_t panel) {
  int64_t first = panel * PANEL, last = least(first + PANEL, a->w->N);
  fetch_vector(a->w->sums, first, last);
  fetch_vector(tensor_floats(a->scale), first, last);
  fetch_vector(tensor_floats(a->bias), first, last);
  fetch_vector(tensor_floats(a->quantize.m), first, last);
}

/* Multiplies rows t to t + m by one panel. The epilogue of this tile becomes pending; the epilogue that was pending runs. `slot`: the
 * index of the panel's constants. */
static void tile_s8(const pgee_linear_args *a, const kernels *k, const epilogue *e, int64_t panel, int64_t slot, int64_t t, int m,
                    prefetch next, pipeline *s) {
  const pgee_packed *w = a->w;
  const int8_t *b = (const int8_t *)(w->bytes + panel * w->panel_bytes);
  const uint8_t *x = (const uint8_t *)a->x->data + t * a->x->stride;
  int64_t kblocks = w->panel_bytes / (64 * PANEL);
  int32_t *c = s->c[s->at ^= 1];
  if (k->gemm_u8s8_overlapped)
    k->gemm_u8s8_overlapped(c, x, a->x->stride, b, kblocks, m, next, &s->pending);
  else {
    run_pending(&s->pending, k);
    k->gemm_u8s8(c, x, a->x->stride, b, kblocks, m, next);
  }
  s->pending = (pending_tile){
      .e = e,
      .c = c,
      .t0 = t,
      .n0 = panel * PANEL,
      .m = m,
      .n = (int)least(PANEL, w->N - panel * PANEL),
      .in_tiles = k->flush_tiles != NULL,
      .panel = &s->panel[slot][s->panel_at],
  };
}

/* Panels of one weight that each tile of rows is multiplied by in turn, and the weights to prefetch meanwhile. */
typedef struct group {
  int64_t panel, count;
  weight_span next;
} group;

/* Multiplies rows first to last by a group of INT8 panels, in tiles of about equal height. Each tile prefetches an equal part of
 * g.next, because memory cannot keep up with bursts. */
static void group_s8(const pgee_linear_args *a, const kernels *k, const epilogue *e, group g, int64_t first, int64_t last,
                     pipeline *s) {
  const pgee_packed *w = a->w;
  int64_t count = tiles_for(k, last - first), groups = w->panel_bytes / (4 * PANEL), all = groups * count * g.count;
  int64_t step = least(MAX_PREFETCH, (g.next.bytes + all - 1) / all);
  prefetch fetch = {step ? (const int8_t *)g.next.from : (const int8_t *)w->bytes, step};
  s->panel_at ^= 1;
  for (int64_t i = 0; i < g.count; i++) {
    if (k->prepare_panel && (g.panel + i + 1) * PANEL <= w->N)
      k->prepare_panel(&s->panel[i][s->panel_at], e, (g.panel + i) * PANEL);
    fetch_vectors(a, g.panel + g.count + i);
  }
  int m;
  for (int64_t t = first, i = 0; t < last; t += m, i++) {
    m = (int)least(round_up((last - t + count - i - 1) / (count - i), k->tile_grain), last - t);
    configure(s, k, m);
    for (int64_t j = 0; j < g.count; j++, fetch.from += groups * step)
      tile_s8(a, k, e, g.panel + j, j, t, m, fetch, s);
  }
}

/* The same for one FP32 panel. `own`: memory of this thread for a panel that must be laid out first, because the weight is a table. */
static void panel_f32(const pgee_linear_args *a, const kernels *k, const epilogue *e, int64_t panel, int64_t first, int64_t last,
                      weight_span next_span, float *own) {
  _Alignas(64) float c[MAX_TILE_M * PANEL];
  const pgee_packed *w = a->w;
  const float *b = w->table ? own : (const float *)(w->bytes + panel * w->panel_bytes);
  int64_t n0 = panel * PANEL;
  int n = (int)least(PANEL, w->N - n0);
  if (w->table)
    packed_panel(w, k, panel, own, own + w->panel_bytes / (int64_t)sizeof(float));
  /* A single tile takes no longer than its own panel takes to arrive, so it prefetches nothing. */
  const float *next = next_span.bytes && last - first > k->tile_m_f32 ? (const float *)(const void *)next_span.from : NULL;
  for (int64_t t = first, quarter = 0; t < last; t += k->tile_m_f32, quarter++) {
    int m = (int)least(k->tile_m_f32, last - t);
    const float *fetch = next && quarter < 4 ? next + quarter * w->K * (PANEL / 4) : NULL;
    k->gemm_f32(c, PANEL, tensor_floats(a->x) + t * a->x->stride, a->x->stride, b, PANEL, w->K, m, n, fetch);
    k->epilogue_f32(e, c, PANEL, t, m, n0, n);
  }
}

static void run_group(const pgee_linear_args *a, const context *c, const epilogue *e, group g, int64_t first, int64_t last,
                      pipeline *s) {
  if (a->w->dtype == PGEE_S8)
    group_s8(a, c->k, e, g, first, last, s);
  else
    panel_f32(a, c->k, e, g.panel, first, last, g.next, (float *)c->scratch);
}

/* ---- A thread's part ------------------------------------------------------------------------------------------------ */

/* The weights to prefetch while panels i to i + count of a part (counted from 0) are multiplied: those that lie `distance` bytes
 * further on. Behind the end of the part's own weights follow those of the next step. */
static weight_span next_of(const context *c, weight_span own, int64_t i, int64_t count, int64_t distance) {
  int64_t at = own.piece * (i + (distance > own.piece * count ? distance / own.piece : count));
  if (at >= own.bytes) {
    at -= own.bytes;
    own = (weight_span){c->next_weights.from, c->next_weights.bytes, own.piece};
  }
  return at < own.bytes ? (weight_span){own.from + at, least(own.piece * count, own.bytes - at), 0} : (weight_span){0};
}

/* The number of panels of the next group if `left` panels are left: groups have about equal sizes. If all rows fit one tile, a group
 * has one panel, because more would save nothing. */
static int64_t group_of(const pgee_packed *w, const kernels *k, int64_t rows, int64_t left) {
  int64_t max = w->dtype == PGEE_S8 && rows > k->tile_m ? least(MAX_GROUP, k->group_bytes / w->panel_bytes) : 1;
  return max > 1 && left > 1 ? divide_up(left, divide_up(left, max)) : 1;
}

void gemm_driver_run(const pgee_linear_args *a, const context *c, const epilogue *e) {
  gemm_part p = gemm_driver_part(a, c);
  weight_span own = gemm_driver_weights(a->w, p);
  pipeline s;
  pipeline_begin(&s);
  if (p.first < p.last)
    fetch_vectors(a, p.first / p.rows);
  int64_t i = 0, distance = a->w->dtype == PGEE_S8 ? c->prefetch_distance : 0;
  for (int64_t at = p.first, end; at < p.last; at = end) {
    int64_t row = at % p.rows, count = row ? 1 : group_of(a->w, c->k, p.rows, (p.last - at) / p.rows);
    end = least(p.last, (at / p.rows + count) * p.rows);
    group g = {at / p.rows, count, next_of(c, own, i, count, distance)};
    run_group(a, c, e, g, row, count > 1 ? p.rows : row + end - at, &s);
    i += count;
  }
  pipeline_end(&s, c->k);
}

void gemm_driver_rectangle(const pgee_linear_args *a, const context *c, const epilogue *e, int64_t row, int64_t row_end,
                           int64_t panel, int64_t panel_end) {
  pipeline s;
  pipeline_begin(&s);
  for (; panel < panel_end; panel++)
    run_group(a, c, e, (group){panel, 1, {0}}, row, row_end, &s);
  pipeline_end(&s, c->k);
}
