/* linear.c: y = activation(x W^T + bias) + residual, tile by tile, never more than a tile away from the accumulators.
 *
 * The work is a list of rows, panel by panel: panel 0's rows, panel 1's, ... Threads take contiguous parts of it, equal in
 * rows: a panel stays in the cache of the thread that goes through its rows, and two threads share at most one panel.
 */
#include <stdio.h>

#include "../kernels/onednn.h"
#include "numbers.h"
#include "operator.h"
#include "status.h"

/* ---- Checks ------------------------------------------------------------------------------------------------------- */

static int check_s8(const pgee_linear_args *a) {
  TRY(expect_u8_stride(a->x, "x"));
  TRY(expect_vector(a->scale, "scale", a->w->N));
  if (!a->row_scale && !a->row_zero)
    return a->zero >= 0 && a->zero <= 255 ? PGEE_OK : fail(PGEE_ARGUMENT, "zero is %d, expected 0 to 255", a->zero);
  if (a->zero != 0)
    return fail(PGEE_ARGUMENT, "zero is %d beside row_scale and row_zero, expected 0", a->zero);
  TRY(expect_like(a->row_scale, "row_scale", PGEE_F32, a->x, 0));
  return expect_like(a->row_zero, "row_zero", PGEE_S32, a->x, 0);
}

static int check_f32(const pgee_linear_args *a) {
  if (a->scale || a->row_scale || a->row_zero || a->zero != 0)
    return fail(PGEE_ARGUMENT, "scale, zero, row_scale and row_zero are for INT8 weights, these are FP32");
  return PGEE_OK;
}

static int check_onednn(const pgee_packed *w) {
  int isa;
  if (w->dtype == PGEE_S8)
    return pgee_onednn_check(w);
  TRY(pgee_isa(&isa));
  if (w->table)
    return fail(PGEE_UNSUPPORTED, "oneDNN takes packed weights, these are the rows of a table");
  const char *why = onednn_missing(isa);
  return why ? fail(PGEE_UNSUPPORTED, "%s", why) : PGEE_OK;
}

static int check(const void *args) {
  const pgee_linear_args *a = args;
  if (!a->w)
    return fail(PGEE_ARGUMENT, "w is missing, expected a packed weight");
  int64_t N = a->w->N;
  TRY(tensor_expect(a->x, "x", a->w->dtype == PGEE_S8 ? PGEE_U8 : PGEE_F32, 2, -1, a->w->K));
  TRY(a->w->dtype == PGEE_S8 ? check_s8(a) : check_f32(a));
  if (a->bias)
    TRY(expect_vector(a->bias, "bias", N));
  if (a->activation < PGEE_IDENTITY || a->activation > PGEE_GELU_TANH_ROUNDED)
    return fail(PGEE_ARGUMENT, "activation is %d, expected PGEE_IDENTITY to PGEE_GELU_TANH_ROUNDED", a->activation);
  if (a->kernel != PGEE_AUTO && a->kernel != PGEE_ONEDNN)
    return fail(PGEE_ARGUMENT, "kernel is %d, expected PGEE_AUTO or PGEE_ONEDNN", a->kernel);
  if (a->kernel == PGEE_ONEDNN)
    TRY(check_onednn(a->w));
  if (a->residual)
    TRY(expect_like(a->residual, "residual", PGEE_F32, a->x, N));
  if (a->y)
    TRY(expect_output_like(a->y, "y", PGEE_F32, a->x, N));
  else if (a->quantize.mode == 0)
    return fail(PGEE_ARGUMENT, "neither y nor quantize: there is no output");
  return quantizer_check(&a->quantize, 1u | 1u << PGEE_STATIC, a->x, N);
}

/* ---- Tiles -------------------------------------------------------------------------------------------------------- */

static epilogue lower(const pgee_linear_args *a) {
  quantizer q = quantizer_lower(&a->quantize);
  return (epilogue){
      .scale = floats(a->scale),
      .bias = a->bias ? floats(a->bias) : a->w->zeros,
      .wsum = a->w->sums,
      .zero = a->zero,
      .row_scale = floats(a->row_scale),
      .row_zero = a->row_zero ? a->row_zero->data : NULL,
      .activation = a->activation,
      .residual = floats(a->residual),
      .ld_residual = stride_of(a->residual),
      .y = floats(a->y),
      .ldy = stride_of(a->y),
      .q = q.q,
      .ldq = q.ldq,
      .q_mul = q.mul,
      .q_zero = q.zero,
      .q_lo = q.lo,
      .q_hi = q.hi,
  };
}

enum { MAX_GROUP = 8 }; /* panels that are taken together */

/* Accumulators of two tiles: one is multiplied while the other's epilogue runs. The core tells a load from a store by the lowest
 * 12 bits of their addresses. So tiles of 6 rows, which were stored a moment before, lie elsewhere in a page than the vectors of
 * the first panels. */
typedef struct tiles {
  _Alignas(4096) int32_t c[2][MAX_TILE_M * PANEL];
  char apart[MAX_TILE_M * 56];
  panel_epilogue panel[MAX_GROUP][2]; /* of this group, and of the one before, whose last tile may be pending */
  int at, panel_at;
  int configured; /* rows that the tile registers are configured for; 0: none */
  tile_pending pending;
} tiles;

static void tiles_begin(tiles *s) {
  s->at = s->panel_at = s->configured = 0;
  s->pending = (tile_pending){0};
}

static void run_pending(const tile_pending *p, const kernels *k) {
  if (p->e)
    k->epilogue_s32(p->e, p->c, PANEL, p->t0, p->m, p->n0, p->n);
}

static void settle(tile_pending *p, const kernels *k) {
  if (p->held)
    k->settle(p->c, p->m);
  p->held = 0;
}

/* The last epilogue. No tile registers stay configured. */
static void tiles_end(tiles *s, const kernels *k) {
  settle(&s->pending, k);
  if (s->configured)
    k->release();
  run_pending(&s->pending, k);
}

static void configure(tiles *s, const kernels *k, int m) {
  if (!k->configure || s->configured == m)
    return;
  settle(&s->pending, k);
  k->configure(s->configured = m);
}

/* How many tiles for some rows: as few as can be, for each reads the panel, whose time a low one cannot fill. The tallest ones only
 * where there would be two: an epilogue cannot run beside them. */
static int64_t tiles_for(const kernels *k, int64_t rows) {
  int64_t n = rows / k->tile_m, most = n > 2 ? k->tile_m : k->tile_most;
  return rows > n * most ? n + 1 : n;
}

static void fetch_vector(const void *v, int64_t first, int64_t last) {
  for (int64_t i = first; v && i < last; i += 16)
    __builtin_prefetch((const float *)v + i, 0, 3);
}

/* What the epilogues of a panel read. */
static void fetch_vectors(const pgee_linear_args *a, int64_t panel) {
  int64_t first = panel * PANEL, last = least(first + PANEL, a->w->N);
  fetch_vector(a->w->sums, first, last);
  fetch_vector(floats(a->scale), first, last);
  fetch_vector(floats(a->bias), first, last);
  fetch_vector(floats(a->quantize.m), first, last);
}

/* Panels of one weight, and what comes into the cache while they are multiplied. */
typedef struct group {
  int64_t panel, count;
  stretch next;
} group;

/* Rows t to t + m of one panel, but for the tile's epilogue. `slot`: where the panel's vectors are laid out. */
static void tile_s8(const pgee_linear_args *a, const kernels *k, const epilogue *e, int64_t panel, int64_t slot, int64_t t, int m,
                    ahead next, tiles *s) {
  const pgee_packed *w = a->w;
  const int8_t *b = (const int8_t *)(w->bytes + panel * w->panel_bytes);
  const uint8_t *x = (const uint8_t *)a->x->data + t * a->x->stride;
  int64_t kblocks = w->panel_bytes / (64 * PANEL);
  int32_t *c = s->c[s->at ^= 1];
  if (k->gemm_u8s8_beside)
    k->gemm_u8s8_beside(c, x, a->x->stride, b, kblocks, m, next, &s->pending);
  else {
    run_pending(&s->pending, k);
    k->gemm_u8s8(c, x, a->x->stride, b, kblocks, m, next);
  }
  s->pending = (tile_pending){
      .e = e,
      .c = c,
      .t0 = t,
      .n0 = panel * PANEL,
      .m = m,
      .n = (int)least(PANEL, w->N - panel * PANEL),
      .held = k->settle != NULL,
      .panel = &s->panel[slot][s->panel_at],
  };
}

/* Rows first to last of a group of panels, in tiles of about one height: the panels follow each other on the rows of a tile,
 * which then stay in the nearest cache. Meanwhile each tile brings its part of g.next into the cache, at a rate that memory can
 * keep up with. */
static void group_s8(const pgee_linear_args *a, const kernels *k, const epilogue *e, group g, int64_t first, int64_t last,
                     tiles *s) {
  const pgee_packed *w = a->w;
  int64_t count = tiles_for(k, last - first), groups = w->panel_bytes / (4 * PANEL), all = groups * count * g.count;
  int64_t step = least(MOST_AHEAD, (g.next.bytes + all - 1) / all);
  ahead fetch = {step ? (const int8_t *)g.next.from : (const int8_t *)w->bytes, step};
  s->panel_at ^= 1;
  for (int64_t i = 0; i < g.count; i++) {
    if (k->panel_of && (g.panel + i + 1) * PANEL <= w->N)
      k->panel_of(&s->panel[i][s->panel_at], e, (g.panel + i) * PANEL);
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
                      stretch after, float *own) {
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
    k->gemm_f32(c, PANEL, floats(a->x) + t * a->x->stride, a->x->stride, b, PANEL, w->K, m, n, fetch);
    k->epilogue_f32(e, c, PANEL, t, m, n0, n);
  }
}

static void run_group(const pgee_linear_args *a, const context *c, const epilogue *e, group g, int64_t first, int64_t last,
                      tiles *s) {
  if (a->w->dtype == PGEE_S8)
    group_s8(a, c->k, e, g, first, last, s);
  else
    panel_f32(a, c->k, e, g.panel, first, last, g.next, (float *)c->scratch);
}

/* ---- Our kernels: who does what ------------------------------------------------------------------------------------ */

/* Where the part of thread `thread` begins in the list of rows. At a whole tile where that moves it by little. */
static int64_t begin_of(int64_t rows, int64_t panels, int tile_m, int thread, int threads) {
  int64_t all = rows * panels, at = all / threads * thread + all % threads * thread / threads;
  if (all / threads < 20 * tile_m)
    return at;
  int64_t row = (at % rows + tile_m / 2) / tile_m * tile_m;
  return at / rows * rows + least(row, rows);
}

typedef struct part {
  int64_t rows, first, last;
} part;

static part part_of(const pgee_linear_args *a, const context *c) {
  int tile_m = a->w->dtype == PGEE_S8 ? c->k->tile_m : c->k->tile_m_f32;
  part p = {.rows = rows_of(a->x, c)};
  if (p.rows > 0) {
    p.first = begin_of(p.rows, a->w->panels, tile_m, c->thread, c->threads);
    p.last = begin_of(p.rows, a->w->panels, tile_m, c->thread + 1, c->threads);
  }
  return p;
}

/* The panels of a part. */
static stretch weights_in(const pgee_packed *w, part p) {
  if (p.first == p.last || w->table)
    return (stretch){0};
  int64_t panel = p.first / p.rows, end = (p.last - 1) / p.rows + 1, piece = w->panel_bytes;
  return (stretch){w->bytes + panel * piece, (end - panel) * piece, piece};
}

static int64_t part_size(int64_t n, int parts) { return (n + parts - 1) / parts; }

/* What is to come into the cache while `count` panels of a part from panel i on are multiplied, counted from 0. */
static stretch piece_ahead(const context *c, stretch own, int64_t i, int64_t count, int64_t lead) {
  int64_t at = own.piece * (i + (lead > own.piece * count ? lead / own.piece : count));
  if (at >= own.bytes) {
    at -= own.bytes;
    own = (stretch){c->after.from, c->after.bytes, own.piece};
  }
  return at < own.bytes ? (stretch){own.from + at, least(own.piece * count, own.bytes - at), 0} : (stretch){0};
}

/* How many panels are taken together where `left` are to come: groups of about one size. One tile of rows has nothing to gain. */
static int64_t group_of(const pgee_packed *w, const kernels *k, int64_t rows, int64_t left) {
  int64_t most = w->dtype == PGEE_S8 && rows > k->tile_m ? least(MAX_GROUP, k->group_bytes / w->panel_bytes) : 1;
  return most > 1 && left > 1 ? part_size(left, (int)part_size(left, (int)most)) : 1;
}

static void run_own(const pgee_linear_args *a, const context *c, const epilogue *e) {
  part p = part_of(a, c);
  stretch own = weights_in(a->w, p);
  tiles s;
  tiles_begin(&s);
  if (p.first < p.last)
    fetch_vectors(a, p.first / p.rows);
  int64_t i = 0, lead = a->w->dtype == PGEE_S8 ? c->lead : 0;
  for (int64_t at = p.first, end; at < p.last; at = end) {
    int64_t row = at % p.rows, count = row ? 1 : group_of(a->w, c->k, p.rows, (p.last - at) / p.rows);
    end = least(p.last, (at / p.rows + count) * p.rows);
    group g = {at / p.rows, count, piece_ahead(c, own, i, count, lead)};
    run_group(a, c, e, g, row, count > 1 ? p.rows : row + end - at, &s);
    i += count;
  }
  tiles_end(&s, c->k);
}

/* ---- oneDNN ------------------------------------------------------------------------------------------------------- */

/* oneDNN likes large matrices, and reads all of a weight for each: threads take rectangles of rows and panels. Of the ways
 * to cut, the one whose largest rectangle is smallest; of equal ones the one with the fewest panels each. */
typedef struct rectangle {
  int64_t row, row_end, panel, panel_end;
} rectangle;

static rectangle rectangle_of(const pgee_linear_args *a, const context *c) {
  int64_t rows = rows_of(a->x, c), panels = a->w->panels;
  int across = c->threads;
  for (int n = c->threads - 1; n >= 1; n--)
    if (c->threads % n == 0 &&
        part_size(rows, c->threads / n) * part_size(panels, n) < part_size(rows, c->threads / across) * part_size(panels, across))
      across = n;
  context down = {.thread = c->thread / across, .threads = c->threads / across},
          side = {.thread = c->thread % across, .threads = across};
  rectangle r;
  share(&down, rows, &r.row, &r.row_end);
  share(&side, panels, &r.panel, &r.panel_end);
  return r;
}

/* What a thread has between oneDNN and the epilogue: 256 KiB, half of a small second-level cache. */
enum { BLOCK = 1 << 16, BLOCK_ROWS = 256 };

/* Columns of a rectangle that the weight has. */
static int64_t columns_of(const pgee_packed *w, const rectangle *r) {
  return least(r->panel_end * PANEL, w->N) - r->panel * PANEL;
}

/* Accumulators [rows][columns] by oneDNN; 0 if it has no kernel for the shape, or no memory, or rows of x do not lie close. */
static int multiply_block(const pgee_linear_args *a, int isa, void *c, const rectangle *r) {
  const pgee_packed *w = a->w;
  int s8 = w->dtype == PGEE_S8;
  const char *b = w->bytes + r->panel * w->panel_bytes, *x = (const char *)a->x->data + r->row * a->x->stride * (s8 ? 1 : 4);
  int64_t rows = r->row_end - r->row, n = columns_of(w, r);
  if (a->x->stride != (s8 ? round_up(w->K, 64) : w->K))
    return 0;
  return s8 ? onednn_u8s8(isa, c, (const uint8_t *)x, (const int8_t *)b, rows, w->K, n)
            : onednn_f32(isa, c, (const float *)x, (const float *)b, rows, w->K, n);
}

/* Where oneDNN cannot, our kernels do: in INT8 the bits are the same. */
static void run_block(const pgee_linear_args *a, const context *c, const epilogue *e, const rectangle *r) {
  int64_t ld = columns_of(a->w, r);
  int done = multiply_block(a, c->k->isa, c->scratch, r);
  tiles s;
  tiles_begin(&s);
  for (int64_t p = r->panel; p < r->panel_end; p++) {
    const char *tile = c->scratch + (p - r->panel) * PANEL * 4;
    int m = (int)(r->row_end - r->row), n = (int)least(PANEL, a->w->N - p * PANEL);
    if (!done)
      run_group(a, c, e, (group){p, 1, {0}}, r->row, r->row_end, &s);
    else if (a->w->dtype == PGEE_S8)
      c->k->epilogue_s32(e, (const int32_t *)tile, ld, r->row, m, p * PANEL, n);
    else
      c->k->epilogue_f32(e, (const float *)tile, ld, r->row, m, p * PANEL, n);
  }
  tiles_end(&s, c->k);
}

static void run_onednn(const pgee_linear_args *a, const context *c, const epilogue *e) {
  rectangle all = rectangle_of(a, c);
  int64_t parts = part_size(all.row_end - all.row, BLOCK_ROWS), rows = all.row_end - all.row;
  for (int64_t i = 0; i < parts; i++) {
    rectangle r = {.row = all.row + rows * i / parts, .row_end = all.row + rows * (i + 1) / parts};
    int64_t panels = BLOCK / PANEL / (r.row_end - r.row);
    for (r.panel = all.panel; r.panel < all.panel_end; r.panel = r.panel_end) {
      r.panel_end = least(r.panel + panels, all.panel_end);
      run_block(a, c, e, &r);
    }
  }
}

/* ---- The operator ------------------------------------------------------------------------------------------------- */

static int64_t scratch(const void *args, int64_t T, int64_t S) {
  const pgee_linear_args *a = args;
  (void)T, (void)S;
  return a->kernel == PGEE_ONEDNN ? (int64_t)BLOCK * 4 : a->w->table ? a->w->panel_bytes + packed_scratch(a->w) : 0;
}

static void run(const void *args, const context *c) {
  const pgee_linear_args *a = args;
  epilogue e = lower(a);
  if (a->kernel == PGEE_ONEDNN)
    run_onednn(a, c, &e);
  else
    run_own(a, c, &e);
}

static stretch weights(const void *args, const context *c) {
  const pgee_linear_args *a = args;
  if (a->kernel == PGEE_ONEDNN || a->w->dtype != PGEE_S8)
    return (stretch){0};
  return weights_in(a->w, part_of(a, c));
}

static int64_t work(const void *args, const context *c) {
  const pgee_linear_args *a = args;
  part p = part_of(a, c);
  rectangle r = rectangle_of(a, c);
  int64_t rows = a->kernel == PGEE_ONEDNN ? (r.row_end - r.row) * (r.panel_end - r.panel) : p.last - p.first;
  return rows * PANEL * a->w->K;
}

const operator op_linear = {
    .name = "linear",
    .args_bytes = sizeof(pgee_linear_args),
    .fields = {FIELD(FIELD_READ, pgee_linear_args, x), FIELD(FIELD_PACKED, pgee_linear_args, w),
               FIELD(FIELD_READ, pgee_linear_args, bias), FIELD(FIELD_READ, pgee_linear_args, scale),
               FIELD(FIELD_READ, pgee_linear_args, row_scale), FIELD(FIELD_READ, pgee_linear_args, row_zero),
               FIELD(FIELD_OVER, pgee_linear_args, residual), FIELD(FIELD_WRITE, pgee_linear_args, y),
               QUANTIZER_FIELDS(pgee_linear_args)},
    .check = check,
    .scratch = scratch,
    .run = run,
    .weights = weights,
    .work = work,
};

int pgee_linear_kernel(const pgee_linear_args *args, int64_t rows, char *name, int64_t bytes) {
  int isa;
  NEED(args, name);
  NEED(args->w);
  if (bytes < 1 || rows < 0)
    return fail(PGEE_ARGUMENT, "linear: a kernel's name for %lld rows in %lld bytes", (long long)rows, (long long)bytes);
  const pgee_packed *w = args->w;
  int s8 = w->dtype == PGEE_S8;
  TRY(pgee_isa(&isa));
  const kernels *k = kernels_for(isa);
  const char *other = NULL;
  if (args->kernel == PGEE_ONEDNN)
    other = s8 ? onednn_u8s8_name(isa, rows, w->K, w->N) : onednn_f32_name(isa, rows, w->K, w->N);
  if (other)
    snprintf(name, (size_t)bytes, "onednn %s", other);
  else
    snprintf(name, (size_t)bytes, "%s%s %dx%d", pgee_isa_name(isa), s8 ? "" : " f32", s8 ? k->tile_m : k->tile_m_f32, PANEL);
  return PGEE_OK;
}
