/* rows.c: runs the row operators and tile epilogues of an ISA on drawn data, and compares with the reference bit by bit, or with
 * a plain loop in double. */
#include "floats.h"

#include "kernels/rows/v16_ref.h"

#include "kernels/gemm_u8s8/layout.h"
#include "kernels/rows/functions.h"

/* OP_epilogue_s32, OP_norm, ...: the row operators of kernels/list.h, numbered from 0. */
#define OP(op, isa) OP_##op,
enum { ROW_KERNELS(OP, ) OPS };
enum { MAX_ROWS = 16, GAP = 3 }; /* rows of every buffer are GAP wider than they need be */

typedef struct rows_case {
  int op, fill;
  int rows, width, first; /* first: the epilogue's n0 */
  int activation;         /* or the mode of pool, or the dtype of embed */
  int residual, y, mode;  /* whether there is a residual, a y; QUANTIZE_* */
  int symmetric, multiplied, ranged, per_row;
  uint32_t seed;
  int step;       /* rows (and columns of a tile) taken at a time; 0: all at once */
  int in_place;   /* y is 1 the residual, 2 x */
  int shifted;    /* a static quantizer adds */
  int overlapped; /* the epilogue of s32 overlaps with a product of so many rows; 0: it runs on its own */
} rows_case;

typedef struct rows_result {
  block y, q, scale, zero, other;
} rows_result;

static rows_result result_new(const rows_case *c) {
  int64_t n = MAX_ROWS * (c->first + c->width + GAP);
  return (rows_result){block_new(n), block_bytes(n), block_new(MAX_ROWS), block_new(MAX_ROWS), block_new(2 * n)};
}
static void result_free(rows_result r) {
  block_free(r.y), block_free(r.q), block_free(r.scale), block_free(r.zero), block_free(r.other);
}

typedef struct rows_input {
  block x, residual, mul, gamma, beta, ranges, row_scale, row_zero, wsum, add;
} rows_input;

/* The last row of x and residual ends at the guard page. */
static rows_input input_new(const rows_case *c) {
  int64_t wide = c->first + c->width, n = (c->rows - 1) * (wide + GAP) + wide;
  rows_input i = {block_filled(n, c->fill, c->seed),
                  block_filled(n, c->fill, c->seed + 1),
                  block_filled(wide, ORDINARY, c->seed + 2),
                  block_filled(wide, ORDINARY, c->seed + 3),
                  block_filled(wide, ORDINARY, c->seed + 4),
                  block_filled(2 * c->rows, ORDINARY, c->seed + 5),
                  block_filled(c->rows, ORDINARY, c->seed + 6),
                  block_new(c->rows),
                  block_new(wide),
                  block_filled(wide, ORDINARY, c->seed + 8)};
  uint32_t seed = c->seed + 7;
  for (int t = 0; t < c->rows; t++) {
    i.ranges.f[2 * t] = -fabsf(i.ranges.f[2 * t]), i.ranges.f[2 * t + 1] = fabsf(i.ranges.f[2 * t + 1]);
    i.row_zero.i[t] = c->per_row == 2 ? 128 : (int32_t)(draw(&seed) % 256);
  }
  for (int64_t k = 0; k < wide; k++)
    i.wsum.i[k] = (int32_t)(draw(&seed) % 40000) - 20000;
  for (int64_t k = 0; c->op == OP_epilogue_s32 && k < wide; k++)
    i.gamma.f[k] *= 1e-6f;
  if (c->op == OP_epilogue_s32)
    for (int64_t k = 0; k < n; k++)
      i.x.i[k] = c->fill == EXTREME ? (draw(&seed) & 1 ? 1040384000 : -1040384000) : (int32_t)(draw(&seed) % 8000000) - 4000000;
  return i;
}
static void input_free(rows_input i) {
  block_free(i.x), block_free(i.residual), block_free(i.mul), block_free(i.gamma), block_free(i.beta), block_free(i.ranges);
  block_free(i.row_scale), block_free(i.row_zero), block_free(i.wsum), block_free(i.add);
}

static quantizer case_quantizer(const rows_case *c, const rows_input *i, const rows_result *r, int64_t ld) {
  return (quantizer){.mode = c->mode,
                     .symmetric = c->symmetric,
                     .mul = c->multiplied || c->mode == QUANTIZE_STATIC ? i->mul.f : NULL,
                     .add = c->shifted ? i->add.f : NULL,
                     .zero = 100,
                     .lo = -100,
                     .hi = 155,
                     .q = r->q.u,
                     .ldq = ld,
                     .row_scale = r->scale.f,
                     .row_zero = r->zero.i,
                     .ranges = c->ranged ? i->ranges.f : NULL};
}

static float *place(const rows_case *c, const rows_input *i, const rows_result *r) {
  return c->in_place == 1 ? i->residual.f : c->in_place == 2 ? i->x.f : r->y.f;
}

/* Runs the epilogue of one tile overlapped with a product of c->overlapped rows, which is written to `product`. The depth K of the
 * product is sometimes too small for the whole epilogue. If the ISA has no overlapped kernel, one runs after the other. */
static void run_overlapped(const kernels *k, const rows_case *c, const pending_tile *given, int64_t ld, int32_t *product) {
  enum { MOST_K = 384 };
  const int64_t K = (int64_t[]){MOST_K, 64, 128}[given->m % 3];
  _Alignas(64) int32_t tile[MAX_ROWS * PANEL] = {0}, sums[MAX_TILE_M * PANEL];
  _Alignas(64) int8_t weights[MOST_K * PANEL];
  uint8_t a[MAX_TILE_M * MOST_K];
  uint32_t seed = c->seed;
  pending_tile p = *given;
  for (int i = 0; i < K * PANEL; i++)
    weights[i] = (int8_t)draw(&seed), a[i % (MAX_TILE_M * K)] = (uint8_t)draw(&seed);
  for (int t = 0; t < p.m; t++)
    memcpy(tile + t * PANEL, p.c + t * ld, (size_t)p.n * 4);
  p.c = tile;
  panel_constants panel;
  p.panel = &panel;
  if (k->prepare_panel && p.n == PANEL)
    k->prepare_panel(&panel, p.e, p.n0);
  if (k->configure_tiles)
    k->configure_tiles(c->overlapped);
  if (k->gemm_u8s8_overlapped)
    k->gemm_u8s8_overlapped(sums, a, K, weights, K / 64, c->overlapped, (prefetch){weights, 0}, &p);
  else {
    gemm_u8s8_ref(sums, a, K, weights, K / 64, c->overlapped, (prefetch){weights, 0});
    k->epilogue_s32(p.e, tile, PANEL, p.t0, p.m, p.n0, p.n);
  }
  if (k->flush_tiles)
    k->flush_tiles(sums, c->overlapped);
  if (k->release_tiles)
    k->release_tiles();
  memcpy(product, sums, (size_t)c->overlapped * PANEL * 4);
}

static void run_epilogue(const kernels *k, const rows_case *c, const rows_input *i, const rows_result *r, int64_t ld) {
  epilogue e = {.scale = i->gamma.f,
                .bias = i->beta.f,
                .wsum = i->wsum.i,
                .zero = 77,
                .row_scale = c->per_row ? i->row_scale.f : NULL,
                .row_zero = c->per_row ? i->row_zero.i : NULL,
                .activation = c->activation,
                .residual = c->residual ? i->residual.f : NULL,
                .ld_residual = ld,
                .y = c->y ? place(c, i, r) : NULL,
                .ldy = ld,
                .q = c->mode ? r->q.u : NULL,
                .ldq = ld,
                .q_mul = i->mul.f,
                .q_add = c->shifted ? i->add.f : NULL,
                .q_zero = 100,
                .q_lo = -100,
                .q_hi = 155};
  for (int64_t t = 0, m = c->step ? c->step : c->rows; t < c->rows; t += m)
    for (int64_t n = c->first, w = c->step ? 5 * c->step : 64; n < c->first + c->width; n += w) {
      int rows = (int)(c->rows - t < m ? c->rows - t : m),
          width = (int)(c->first + c->width - n < w ? c->first + c->width - n : w);
      if (c->op == OP_epilogue_s32 && c->overlapped)
        run_overlapped(k, c, &(pending_tile){&e, i->x.i + t * ld + n, t, n, rows, width, 0, NULL}, ld, r->other.i);
      else if (c->op == OP_epilogue_s32)
        k->epilogue_s32(&e, i->x.i + t * ld + n, ld, t, rows, n, width);
      else
        k->epilogue_f32(&e, i->x.f + t * ld + n, ld, t, rows, n, width);
    }
}

static void run_rows(const kernels *k, const rows_case *c, const rows_input *i, const rows_result *r, int64_t ld, int64_t t,
                     int64_t end) {
  quantizer z = case_quantizer(c, i, r, ld);
  if (c->op == OP_norm) {
    float scratch[4096];
    norm a = {.x = i->x.f,
              .residual = c->residual ? i->residual.f : NULL,
              .ldx = ld,
              .ld_residual = ld,
              .gamma = i->gamma.f,
              .beta = i->beta.f,
              .eps = 1e-12f,
              .width = c->width,
              .y = c->y ? place(c, i, r) : NULL,
              .ldy = ld,
              .quantize = z,
              .scratch = scratch};
    k->norm(&a, t, end);
  } else if (c->op == OP_quantize)
    k->quantize(&z, i->x.f, ld, c->width, t, end);
  else
    k->range(r->other.f, i->x.f, ld, c->multiplied ? i->mul.f : NULL, c->width, t, end);
}

/* Rows begin at an odd address, as they may in a mapped file. Each row ends before a guard page. */
static void run_embed(const kernels *k, const rows_case *c, const rows_input *i, const rows_result *r) {
  int dtype = c->activation;
  int64_t bytes = c->width * (dtype == PGEE_F32 ? 4 : dtype == PGEE_S8 ? 1 : 2);
  block row[3];
  table_row given[3];
  uint32_t seed = c->seed;
  for (int j = 0; j < 3; j++) {
    row[j] = block_bytes(bytes);
    for (int64_t b = 0; b < bytes; b++)
      row[j].u[b] = (uint8_t)draw(&seed);
    if (dtype == PGEE_F32)
      memcpy(row[j].u, j ? i->residual.u : i->x.u, (size_t)bytes);
    int odd = dtype != PGEE_S8; /* bytes have no alignment, and so end at the guard page */
    memmove(row[j].u - odd, row[j].u, (size_t)bytes);
    given[j] = (table_row){row[j].u - odd, dtype, i->gamma.f[0] * (float)(j + 1)};
  }
  k->embed(r->y.f, given, c->residual ? given + 1 : NULL, c->multiplied ? given + 2 : NULL, c->width);
  for (int j = 0; j < 3; j++)
    block_free(row[j]);
}

static void run(const kernels *k, const rows_case *c, const rows_input *i, const rows_result *r) {
  int64_t ld = c->first + c->width + GAP;
  switch (c->op) {
  case OP_epilogue_s32:
  case OP_epilogue_f32: run_epilogue(k, c, i, r, ld); break;
  case OP_embed: run_embed(k, c, i, r); break;
  case OP_pool: k->pool(r->y.f, i->x.f, ld, c->rows, c->width, c->activation); break;
  case OP_unit: k->unit(place(c, i, r), i->x.f, c->width); break;
  case OP_minmax:
    memcpy(r->y.f, i->gamma.f, (size_t)c->width * 4);
    memcpy(r->other.f, i->beta.f, (size_t)c->width * 4);
    k->minmax(r->y.f, r->other.f, i->x.f, ld, c->rows, c->width);
    break;
  default:
    for (int64_t t = 0, m = c->step ? c->step : c->rows; t < c->rows; t += m)
      run_rows(k, c, i, r, ld, t, t + m < c->rows ? t + m : c->rows);
  }
  for (int64_t t = 0; c->in_place && t < (c->op == OP_unit ? 1 : c->rows); t++)
    memcpy(r->y.f + t * ld + c->first, place(c, i, r) + t * ld + c->first, (size_t)c->width * 4);
}

static int same_results(const rows_case *c, const rows_result *a, const rows_result *b, char *why, int64_t bytes) {
  int64_t n = MAX_ROWS * (c->first + c->width + GAP);
  return same_floats(a->y, b->y, n, "y", why, bytes) && same_bytes(a->q, b->q, n, "q", why, bytes) &&
         same_floats(a->scale, b->scale, MAX_ROWS, "row_scale", why, bytes) &&
         same_floats(a->zero, b->zero, MAX_ROWS, "row_zero", why, bytes) &&
         same_floats(a->other, b->other, 2 * n, "other", why, bytes);
}

/* 1 if the ISA's kernel, called as c->step says, gives the bits of the reference called once. corrupt: one bit of what came out
 * is flipped. */
PUBLIC int spec_rows_equal(int isa, const rows_case *c, int corrupt, char *why, int64_t bytes) {
  rows_input in = input_new(c), again = input_new(c);
  rows_result got = result_new(c), want = result_new(c);
  rows_case once = *c;
  once.step = once.in_place = 0;
  run(kernels_for(isa), c, &in, &got);
  run(kernels_for(PGEE_REF), &once, &again, &want);
  if (corrupt && c->mode)
    got.q.u[c->width / 2] ^= 1;
  else if (corrupt)
    (c->op == OP_range ? got.other : got.y).bits[c->width / 2] ^= 1;
  int ok = same_results(c, &got, &want, why, bytes);
  input_free(in), input_free(again), result_free(got), result_free(want);
  return ok;
}

PUBLIC uint64_t spec_rows_digest(int isa, const rows_case *c, uint64_t h) {
  int64_t n = MAX_ROWS * (c->first + c->width + GAP);
  rows_input in = input_new(c);
  rows_result r = result_new(c);
  run(kernels_for(isa), c, &in, &r);
  h = digest_words(h, r.y.bits, n);
  for (int64_t i = 0; i < n; i++)
    h = (h ^ r.q.u[i]) * 0x100000001b3u;
  h = digest_words(digest_words(h, r.scale.bits, MAX_ROWS), r.zero.bits, MAX_ROWS);
  h = digest_words(h, r.other.bits, 2 * n);
  input_free(in), result_free(r);
  return h;
}

/* ---- The oracle: plain loops in double ------------------------------------------------------------------------------ */

static double activated(double v, int activation) {
  switch (activation) {
  case PGEE_GELU:
  case PGEE_GELU_ROUNDED: return v / 2 * erfc(-v / sqrt(2));
  case PGEE_GELU_TANH:
  case PGEE_GELU_TANH_ROUNDED: return v / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (v + 0.044715 * v * v * v)));
  case PGEE_RELU: return v > 0 ? v : 0;
  case PGEE_TANH: return tanh(v);
  case PGEE_QUICK_GELU: return v / (1 + exp(-1.702f * v));
  case PGEE_SILU: return v / (1 + exp(-v));
  default: return v;
  }
}

typedef struct worst {
  double y, q; /* the largest |got - want| / max(1, |want|); the largest distance of a level from its real value, in levels */
} worst;

static void see_y(worst *w, double got, double want) { see(&w->y, fabs(got - want) / fmax(1, fabs(want))); }
/* want: the level before rounding; inside the bounds, or cut to them. */
static void see_q(worst *w, int level, double want, double lo, double hi) { see(&w->q, fabs(level - fmin(fmax(want, lo), hi))); }

/* A row of values v [width] before quantizing, against what the kernel wrote for row t. */
static void see_quantized(worst *w, const rows_case *c, const rows_input *in, const rows_result *r, int64_t ld, int t,
                          const double *v) {
  if (c->mode == QUANTIZE_STATIC)
    for (int k = 0; k < c->width; k++)
      see_q(w, r->q.u[t * ld + k] - 100, v[k] * in->mul.f[k] + (c->shifted ? in->add.f[k] : 0), -100, 155);
  if (c->mode != QUANTIZE_DYNAMIC)
    return;
  double lo = 0, hi = 0;
  for (int k = 0; k < c->width; k++) {
    double x = v[k] * (c->multiplied ? in->mul.f[k] : 1);
    lo = fmin(lo, x), hi = fmax(hi, x);
  }
  if (c->ranged)
    lo = in->ranges.f[2 * t], hi = in->ranges.f[2 * t + 1];
  double scale = c->symmetric ? fmax(-lo, hi) / 127 : (hi - lo) / 255;
  int zero = r->zero.i[t];
  see_y(w, r->scale.f[t] / scale, 1);
  see_q(w, zero, c->symmetric ? 128 : -lo / scale, 0, 255);
  for (int k = 0; k < c->width; k++)
    see_q(w, r->q.u[t * ld + k] - zero, v[k] * (c->multiplied ? in->mul.f[k] : 1) / scale, c->symmetric ? -127 : -zero,
          c->symmetric ? 127 : 255 - zero);
}

static void see_epilogue(worst *w, const rows_case *c, const rows_input *in, const rows_result *r, int64_t ld) {
  for (int t = 0; t < c->rows; t++)
    for (int n = c->first; n < c->first + c->width; n++) {
      double v = in->x.f[t * ld + n] + (double)in->beta.f[n];
      if (c->op == OP_epilogue_s32) {
        double a = in->x.i[t * ld + n] - (c->per_row ? in->row_zero.i[t] : 77) * (double)in->wsum.i[n];
        v = a * (c->per_row ? in->row_scale.f[t] : 1) * in->gamma.f[n] + in->beta.f[n];
      }
      v = activated(v, c->activation) + (c->residual ? in->residual.f[t * ld + n] : 0);
      if (c->y)
        see_y(w, r->y.f[t * ld + n], v);
      if (c->mode)
        see_q(w, r->q.u[t * ld + n] - 100, v * in->mul.f[n] + (c->shifted ? in->add.f[n] : 0), -100, 155);
    }
}

static void see_rows(worst *w, const rows_case *c, const rows_input *in, const rows_result *r, int64_t ld) {
  double v[4096];
  for (int t = 0; t < c->rows; t++) {
    double sum = 0, squares = 0;
    for (int k = 0; k < c->width; k++)
      sum += v[k] = in->x.f[t * ld + k] + (c->op == OP_norm && c->residual ? (double)in->residual.f[t * ld + k] : 0);
    for (int k = 0; c->op == OP_norm && k < c->width; k++)
      squares += (v[k] - sum / c->width) * (v[k] - sum / c->width);
    for (int k = 0; c->op == OP_norm && k < c->width; k++)
      v[k] = (v[k] - sum / c->width) / sqrt(squares / c->width + 1e-12) * in->gamma.f[k] + in->beta.f[k];
    for (int k = 0; c->op == OP_norm && c->y && k < c->width; k++)
      see_y(w, r->y.f[t * ld + k], v[k]);
    see_quantized(w, c, in, r, ld, t, v);
  }
}

static void see_columns(worst *w, const rows_case *c, const rows_input *in, const rows_result *r, int64_t ld) {
  double squares = 0;
  for (int k = 0; k < c->width; k++)
    squares += (double)in->x.f[k] * in->x.f[k];
  for (int k = 0; k < c->width; k++) {
    const float *x = in->x.f + k;
    double sum = 0, lo = x[0], hi = x[0], weighted = 0;
    for (int t = 0; t < c->rows; t++) {
      sum += x[t * ld], weighted += (t + 1.0) * x[t * ld];
      lo = fmin(lo, x[t * ld]), hi = fmax(hi, x[t * ld]);
    }
    double pooled[6] = {
        x[0], sum / c->rows, hi, sum / sqrt(c->rows), x[(c->rows - 1) * ld], weighted / (c->rows * (c->rows + 1.0) / 2)};
    if (c->op == OP_minmax) {
      see_y(w, r->y.f[k], fmin(lo, in->gamma.f[k]));
      see_y(w, r->other.f[k], fmax(hi, in->beta.f[k]));
    } else
      see_y(w, r->y.f[k], c->op == OP_unit ? x[0] / sqrt(squares) : pooled[c->activation]);
  }
}

static void see_ranges(worst *w, const rows_case *c, const rows_input *in, const rows_result *r, int64_t ld) {
  for (int t = 0; t < c->rows; t++) {
    double lo = 0, hi = 0;
    for (int k = 0; k < c->width; k++) {
      double x = in->x.f[t * ld + k] * (c->multiplied ? (double)in->mul.f[k] : 1);
      lo = fmin(lo, x), hi = fmax(hi, x);
    }
    see_y(w, r->other.f[2 * t], lo);
    see_y(w, r->other.f[2 * t + 1], hi);
  }
}

/* How far the reference is from plain loops in double. */
PUBLIC void spec_rows_error(const rows_case *c, double *y, double *q) {
  int64_t ld = c->first + c->width + GAP;
  rows_input in = input_new(c);
  rows_result r = result_new(c);
  worst w = {0, 0};
  run(kernels_for(PGEE_REF), c, &in, &r);
  switch (c->op) {
  case OP_epilogue_s32:
  case OP_epilogue_f32: see_epilogue(&w, c, &in, &r, ld); break;
  case OP_norm:
  case OP_quantize: see_rows(&w, c, &in, &r, ld); break;
  case OP_range: see_ranges(&w, c, &in, &r, ld); break;
  default: see_columns(&w, c, &in, &r, ld); break;
  }
  *y = w.y, *q = w.q;
  input_free(in), result_free(r);
}

/* ---- Single functions ------------------------------------------------------------------------------------------------ */

/* exp as softmax uses it. */
PUBLIC float spec_exp(float x) {
  float y[16];
  vstore(y, vexp(vsplat(x)), 16);
  return y[0];
}

/* activation(x) by an ISA's epilogue. */
PUBLIC float spec_activate(int isa, float x, int activation) {
  float bias = -0.0f, y = 0;
  epilogue e = {.bias = &bias, .activation = activation, .y = &y, .ldy = 1};
  kernels_for(isa)->epilogue_f32(&e, &x, 1, 0, 1, 0, 1);
  return y;
}

/* The largest error of an ISA's epilogue where only u8 is stored, in millionths: u8 is 128 more than how far activation(x) is off,
 * from -limit to limit by `step`. */
PUBLIC double spec_error_in_u8(int isa, int activation, float limit, float step) {
  float bias = -0.0f, mul = 1e6f;
  uint8_t q;
  double most = 0;
  for (float x = -limit; x <= limit; x += step) {
    float residual = (float)-activated(x, activation);
    epilogue e = {.bias = &bias,
                  .activation = activation,
                  .residual = &residual,
                  .ld_residual = 1,
                  .q = &q,
                  .ldq = 1,
                  .q_mul = &mul,
                  .q_zero = 128,
                  .q_lo = -128,
                  .q_hi = 127};
    kernels_for(isa)->epilogue_f32(&e, &x, 1, 0, 1, 0, 1);
    see(&most, fabs(q - 128.0));
  }
  return most;
}

/* activation(x) by an ISA's epilogue, quantized with scale 1 and zero 100. */
PUBLIC int spec_activate_u8(int isa, float x, int activation) {
  float bias = -0.0f, mul = 1;
  uint8_t q;
  epilogue e = {
      .bias = &bias, .activation = activation, .q = &q, .ldq = 1, .q_mul = &mul, .q_zero = 100, .q_lo = -100, .q_hi = 155};
  kernels_for(isa)->epilogue_f32(&e, &x, 1, 0, 1, 0, 1);
  return q;
}

/* The largest error over every `stride`-th float up to `limit` in magnitude: of exp and tanh in units of the last place where
 * the result is normal, of GELU relative to max(1, |x|). activation -1 is exp. */
PUBLIC double spec_function_error(int activation, float limit, uint32_t stride) {
  double most = 0;
  for (uint64_t u = 0; u < 0x100000000u; u += 16ull * stride) {
    float x[16], y[16];
    for (int i = 0; i < 16; i++)
      x[i] = of_bits((uint32_t)(u + (uint64_t)i * stride));
    vstore(y, activation < 0 ? vexp(vload(x, 16)) : activate(vload(x, 16), activation), 16);
    for (int i = 0; i < 16; i++) {
      if (!(fabsf(x[i]) <= limit))
        continue;
      double want = activation < 0 ? exp(x[i]) : activated(x[i], activation), unit = fmax(1, fabsf(x[i]));
      if (want != 0 && (activation < 0 || activation == PGEE_TANH))
        unit = ldexp(1, ilogb(want) - 23);
      if (fabs(want) >= 0x1p-126 || unit >= 1)
        see(&most, fabs(y[i] - want) / unit);
    }
  }
  return most;
}

/* y [65536] of all 16-bit floats of a dtype, by an ISA's embed, 61 at a time. */
PUBLIC void spec_widen(int isa, int dtype, float *y) {
  uint16_t h[61];
  for (int64_t u = 0; u < 65536; u += 61) {
    int n = 65536 - u < 61 ? (int)(65536 - u) : 61;
    for (int i = 0; i < n; i++)
      h[i] = (uint16_t)(u + i);
    kernels_for(isa)->embed(y + u, &(table_row){h, dtype, 0}, NULL, NULL, n);
  }
}

/* y [256] of the bytes 0 to 255 as S8 with a scale, by an ISA's embed. The three rows of 61, 131 and 64 bytes end unaligned. */
PUBLIC void spec_widen_s8(int isa, float scale, float *y) {
  const int n[] = {61, 131, 64};
  uint8_t q[256];
  for (int u = 0; u < 256; u++)
    q[u] = (uint8_t)u;
  for (int i = 0, u = 0; i < 3; u += n[i++])
    kernels_for(isa)->embed(y + u, &(table_row){q + u, PGEE_S8, scale}, NULL, NULL, n[i]);
}
