/* norm.c: layer normalization of x + residual, as floats, as u8 or both. Threads share the rows. */
#include "operator.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "expect.h"
#include "quantizer.h"

static int check(const void *args) {
  const pgee_norm_args *a = args;
  TRY(tensor_expect(a->x, "x", PGEE_F32, 2, -1, -1));
  int64_t H = a->x->shape[1];
  if (a->residual)
    TRY(expect_like(a->residual, "residual", PGEE_F32, a->x, H));
  TRY(expect_vector(a->gamma, "gamma", H));
  TRY(expect_vector(a->beta, "beta", H));
  if (!(a->eps >= 0) || is_nonfinite(a->eps))
    return fail(PGEE_ARGUMENT, "eps is %g, expected 0 or more", (double)a->eps);
  if (a->y)
    TRY(expect_output_like(a->y, "y", PGEE_F32, a->x, H));
  else if (a->quantize.mode == 0)
    return fail(PGEE_ARGUMENT, "neither y nor quantize is given, expected at least one of these outputs");
  return quantizer_check(&a->quantize, 1u | 1u << PGEE_STATIC | 1u << PGEE_DYNAMIC_TOKEN, a->x, H);
}

static int64_t scratch(const void *args, int64_t T, int64_t S) {
  const pgee_norm_args *a = args;
  (void)T, (void)S;
  return a->y ? 0 : a->x->shape[1] * (int64_t)sizeof(float);
}

static void run(const void *args, const context *c) {
  const pgee_norm_args *a = args;
  int64_t first, last;
  team_share(c, operator_rows(a->x, c), &first, &last);
  norm n = {
      .x = tensor_floats(a->x),
      .ldx = a->x->stride,
      .residual = tensor_floats(a->residual),
      .ld_residual = tensor_stride(a->residual),
      .gamma = tensor_floats(a->gamma),
      .beta = tensor_floats(a->beta),
      .eps = a->eps,
      .width = a->x->shape[1],
      .y = tensor_floats(a->y),
      .ldy = tensor_stride(a->y),
      .quantize = quantizer_lower(&a->quantize),
      .scratch = (float *)c->scratch,
  };
  if (first < last)
    c->k->norm(&n, first, last);
}

const operator_entry op_norm = {
    .name = "norm",
    .args_bytes = sizeof(pgee_norm_args),
    .fields = {FIELD(FIELD_OVER, pgee_norm_args, x), FIELD(FIELD_OVER, pgee_norm_args, residual),
               FIELD(FIELD_READ, pgee_norm_args, gamma), FIELD(FIELD_READ, pgee_norm_args, beta),
               FIELD(FIELD_WRITE, pgee_norm_args, y), QUANTIZER_FIELDS(pgee_norm_args)},
    .check = check,
    .scratch = scratch,
    .run = run,
};
