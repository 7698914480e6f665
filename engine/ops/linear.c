/* linear.c: y = activation(x W^T + bias) + residual, by our own kernels (gemm_driver.c) or by oneDNN.
 *
 * Our own kernels: the work is a list of all rows of panel 0, all rows of panel 1, ... Each thread takes a contiguous part of the
 * list. Then a panel stays in the cache of one thread while that thread goes through the rows, and two threads share at most one panel.
 */
#include <stdio.h>

#include "engine/cpu/onednn.h"
#include "engine/base/numbers.h"
#include "gemm_driver.h"
#include "operator.h"
#include "engine/base/status.h"
#include "expect.h"
#include "quantizer.h"

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

static int check_float(const pgee_linear_args *a) {
  if (a->scale || a->row_scale || a->row_zero || a->zero != 0)
    return fail(PGEE_ARGUMENT, "scale, zero, row_scale and row_zero are for INT8 weights, these are %s",
                a->w->dtype == PGEE_BF16 ? "BF16" : "FP32");
  return PGEE_OK;
}

static int check_onednn(const pgee_packed *w) {
  int isa;
  if (w->dtype == PGEE_S8)
    return pgee_onednn_check(w);
  TRY(pgee_isa(&isa));
  if (w->dtype == PGEE_BF16)
    return fail(PGEE_UNSUPPORTED, "kernel is PGEE_ONEDNN, but BF16 weights are multiplied by PGEE_NATIVE only");
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
  TRY(a->w->dtype == PGEE_S8 ? check_s8(a) : check_float(a));
  if (a->bias)
    TRY(expect_vector(a->bias, "bias", N));
  if (a->activation < PGEE_IDENTITY || a->activation > PGEE_GELU_TANH_ROUNDED)
    return fail(PGEE_ARGUMENT, "activation is %d, expected PGEE_IDENTITY to PGEE_GELU_TANH_ROUNDED", a->activation);
  if (a->kernel != PGEE_NATIVE && a->kernel != PGEE_ONEDNN)
    return fail(PGEE_ARGUMENT, "kernel is %d, expected PGEE_NATIVE or PGEE_ONEDNN", a->kernel);
  if (a->kernel == PGEE_ONEDNN)
    TRY(check_onednn(a->w));
  if (a->residual)
    TRY(expect_like(a->residual, "residual", PGEE_F32, a->x, N));
  if (a->y)
    TRY(expect_output_like(a->y, "y", PGEE_F32, a->x, N));
  else if (a->quantize.mode == 0)
    return fail(PGEE_ARGUMENT, "neither y nor quantize is given, expected at least one of these outputs");
  return quantizer_check(&a->quantize, 1u | 1u << PGEE_STATIC, a->x, N);
}

/* ---- oneDNN ------------------------------------------------------------------------------------------------------- */

/* Each thread takes a rectangle of rows and panels for oneDNN, because it is fast on large matrices and each call reads its whole
 * weight, and for BF16, because a thread rounds its rows once for many panels. rectangle_of chooses the cut whose largest rectangle is smallest. Among equal cuts it chooses the one with the fewest panels in a rectangle. */
typedef struct rectangle {
  int64_t row, row_end, panel, panel_end;
} rectangle;

static rectangle rectangle_of(const pgee_linear_args *a, const context *c) {
  int64_t rows = operator_rows(a->x, c), panels = a->w->panels;
  int across = c->threads;
  for (int n = c->threads - 1; n >= 1; n--)
    if (c->threads % n == 0 &&
        divide_up(rows, c->threads / n) * divide_up(panels, n) < divide_up(rows, c->threads / across) * divide_up(panels, across))
      across = n;
  context down = {.thread = c->thread / across, .threads = c->threads / across},
          side = {.thread = c->thread % across, .threads = across};
  rectangle r;
  team_share(&down, rows, &r.row, &r.row_end);
  team_share(&side, panels, &r.panel, &r.panel_end);
  return r;
}

/* oneDNN writes BLOCK sums, then our epilogue reads them. 256 KiB are half of a small second-level cache. */
enum { BLOCK = 1 << 16, BLOCK_ROWS = 256 };

/* Output channels of a rectangle. The last panel of a weight may have fewer than 64. */
static int64_t columns_of(const pgee_packed *w, const rectangle *r) {
  return least(r->panel_end * PANEL, w->N) - r->panel * PANEL;
}

/* Writes the sums [rows][columns] to `c` by oneDNN. Returns 0 if oneDNN has no kernel for the shape or no memory, or if there are gaps
 * between the rows of x. */
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

/* If oneDNN cannot multiply a block, our kernels do. INT8 results have the same bits. */
static void run_block(const pgee_linear_args *a, const context *c, const epilogue *e, const rectangle *r) {
  int64_t ld = columns_of(a->w, r);
  if (!multiply_block(a, c->k->isa, c->scratch, r)) {
    gemm_driver_rectangle(a, c, e, r->row, r->row_end, r->panel, r->panel_end);
    return;
  }
  for (int64_t p = r->panel; p < r->panel_end; p++) {
    const char *tile = c->scratch + (p - r->panel) * PANEL * 4;
    int m = (int)(r->row_end - r->row), n = (int)least(PANEL, a->w->N - p * PANEL);
    if (a->w->dtype == PGEE_S8)
      c->k->epilogue_s32(e, (const int32_t *)tile, ld, r->row, m, p * PANEL, n);
    else
      c->k->epilogue_f32(e, (const float *)tile, ld, r->row, m, p * PANEL, n);
  }
}

static void run_onednn(const pgee_linear_args *a, const context *c, const epilogue *e) {
  rectangle all = rectangle_of(a, c);
  int64_t parts = divide_up(all.row_end - all.row, BLOCK_ROWS), rows = all.row_end - all.row;
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
  if (a->w->dtype == PGEE_BF16)
    return gemm_bf16_scratch(a->w);
  return a->kernel == PGEE_ONEDNN ? (int64_t)BLOCK * 4 : a->w->table ? a->w->panel_bytes + packed_scratch(a->w) : 0;
}

static void run(const void *args, const context *c) {
  const pgee_linear_args *a = args;
  epilogue e = gemm_driver_epilogue(a);
  if (a->kernel == PGEE_ONEDNN)
    run_onednn(a, c, &e);
  else if (a->w->dtype == PGEE_BF16) {
    rectangle r = rectangle_of(a, c);
    gemm_bf16_rectangle(a, c, &e, r.row, r.row_end, r.panel, r.panel_end);
  } else
    gemm_driver_run(a, c, &e);
}

static weight_span weights(const void *args, const context *c) {
  const pgee_linear_args *a = args;
  if (a->kernel == PGEE_ONEDNN || a->w->dtype != PGEE_S8)
    return (weight_span){0};
  return gemm_driver_weights(a->w, gemm_driver_part(a, c));
}

static int64_t work(const void *args, const context *c) {
  const pgee_linear_args *a = args;
  gemm_part p = gemm_driver_part(a, c);
  rectangle r = rectangle_of(a, c);
  int64_t rows =
      a->kernel == PGEE_ONEDNN || a->w->dtype == PGEE_BF16 ? (r.row_end - r.row) * (r.panel_end - r.panel) : p.last - p.first;
  return rows * PANEL * a->w->K;
}

const operator_entry op_linear = {
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
  else if (w->dtype == PGEE_BF16)
    snprintf(name, (size_t)bytes, "%s bf16", pgee_isa_name(isa));
  else
    snprintf(name, (size_t)bytes, "%s%s %dx%d", pgee_isa_name(isa), s8 ? "" : " f32", s8 ? k->tile_m : k->tile_m_f32, PANEL);
  return PGEE_OK;
}
