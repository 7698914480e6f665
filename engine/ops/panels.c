/* panels.c: groups of panels of a linear's weight, multiplied with rows tile by tile. */
#include "panels.h"

#include "engine/base/numbers.h"
#include "quantizer.h"

epilogue linear_epilogue(const pgee_linear_args *a) {
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
      .q_zero = q.zero,
      .q_lo = q.lo,
      .q_hi = q.hi,
  };
}

void tiles_begin(tiles *s) {
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

void tiles_end(tiles *s, const kernels *k) {
  flush(&s->pending, k);
  if (s->configured)
    k->release_tiles();
  run_pending(&s->pending, k);
}

static void configure(tiles *s, const kernels *k, int m) {
  if (!k->configure_tiles || s->configured == m)
    return;
  flush(&s->pending, k);
  k->configure_tiles(s->configured = m);
}

/* The number of tiles for some rows. It is as small as possible, because each tile streams the whole panel, and a short tile does
 * too little arithmetic to hide that. Tiles of tile_max rows are used only if there are at most two, because an epilogue cannot
 * overlap with them. */
static int64_t tiles_for(const kernels *k, int64_t rows) {
  int64_t n = rows / k->tile_m, most = n > 2 ? k->tile_m : k->tile_max;
  return rows > n * most ? n + 1 : n;
}

static void fetch_vector(const void *v, int64_t first, int64_t last) {
  for (int64_t i = first; v && i < last; i += 16)
    __builtin_prefetch((const float *)v + i, 0, 3);
}

void fetch_vectors(const pgee_linear_args *a, int64_t panel) {
  int64_t first = panel * PANEL, last = least(first + PANEL, a->w->N);
  fetch_vector(a->w->sums, first, last);
  fetch_vector(tensor_floats(a->scale), first, last);
  fetch_vector(tensor_floats(a->bias), first, last);
  fetch_vector(tensor_floats(a->quantize.m), first, last);
}

/* Rows t to t + m of one panel, but for the tile's epilogue. `slot`: where the panel's vectors are laid out. */
static void tile_s8(const pgee_linear_args *a, const kernels *k, const epilogue *e, int64_t panel, int64_t slot, int64_t t, int m,
                    prefetch next, tiles *s) {
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

/* Rows first to last of a group of panels, in tiles of about one height: the panels follow each other on the rows of a tile,
 * which then stay in the nearest cache. Each tile also prefetches its part of g.next, at a rate that memory can keep up
 * with. */
static void group_s8(const pgee_linear_args *a, const kernels *k, const epilogue *e, group g, int64_t first, int64_t last,
                     tiles *s) {
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

/* `own`: where to lay out a table's panel. */
static void panel_f32(const pgee_linear_args *a, const kernels *k, const epilogue *e, int64_t panel, int64_t first, int64_t last,
                      weight_span after, float *own) {
  _Alignas(64) float c[MAX_TILE_M * PANEL];
  const pgee_packed *w = a->w;
  const float *b = w->table ? own : (const float *)(w->bytes + panel * w->panel_bytes);
  int64_t n0 = panel * PANEL;
  int n = (int)least(PANEL, w->N - n0);
  if (w->table)
    packed_panel(w, panel, own, own + w->panel_bytes / (int64_t)sizeof(float));
  /* One tile takes no longer than its own panel needs to come. */
  const float *next = after.bytes && last - first > k->tile_m_f32 ? (const float *)(const void *)after.from : NULL;
  for (int64_t t = first, quarter = 0; t < last; t += k->tile_m_f32, quarter++) {
    int m = (int)least(k->tile_m_f32, last - t);
    const float *fetch = next && quarter < 4 ? next + quarter * w->K * (PANEL / 4) : NULL;
    k->gemm_f32(c, PANEL, tensor_floats(a->x) + t * a->x->stride, a->x->stride, b, PANEL, w->K, m, n, fetch);
    k->epilogue_f32(e, c, PANEL, t, m, n0, n);
  }
}

void run_group(const pgee_linear_args *a, const context *c, const epilogue *e, group g, int64_t first, int64_t last, tiles *s) {
  if (a->w->dtype == PGEE_S8)
    group_s8(a, c->k, e, g, first, last, s);
  else
    panel_f32(a, c->k, e, g.panel, first, last, g.next, (float *)c->scratch);
}
