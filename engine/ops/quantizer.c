/* quantizer.c: a pgee_quantizer, checked, and as the kernels take it. See quantizer.h. */
#include "quantizer.h"

#include "engine/base/status.h"
#include "engine/data/tensor.h"
#include "expect.h"

static int static_check(const pgee_quantizer *q, int64_t K) {
  TRY(expect_vector(q->m, "quantize.m", K));
  if (q->b)
    TRY(expect_vector(q->b, "quantize.b", K));
  if (q->row_scale || q->row_zero)
    return fail(PGEE_ARGUMENT, "quantize.row_scale and row_zero are for dynamic quantization, not static");
  if (q->symmetric ? q->zero != 128 : q->zero < 0 || q->zero > 255)
    return fail(PGEE_ARGUMENT, "quantize.zero is %d, expected %s", q->zero, q->symmetric ? "128 if symmetric" : "0 to 255");
  return PGEE_OK;
}

static int dynamic_check(const pgee_quantizer *q, const pgee_tensor *like, int64_t K) {
  if (q->m)
    TRY(expect_vector(q->m, "quantize.m", K));
  if (q->b)
    return fail(PGEE_ARGUMENT, "quantize.b is for static quantization, not dynamic");
  if (q->zero != 0)
    return fail(PGEE_ARGUMENT, "quantize.zero is %d, expected 0: dynamic quantization finds its own", q->zero);
  TRY(expect_output_like(q->row_scale, "quantize.row_scale", PGEE_F32, like, 0));
  return expect_output_like(q->row_zero, "quantize.row_zero", PGEE_S32, like, 0);
}

int quantizer_check(const pgee_quantizer *q, unsigned modes, const pgee_tensor *like, int64_t K) {
  if (q->mode < 0 || q->mode > PGEE_DYNAMIC_SEQUENCE || !(modes >> q->mode & 1))
    return fail(PGEE_ARGUMENT, "quantize.mode is %d, which this operator does not do", q->mode);
  if (q->symmetric != 0 && q->symmetric != 1)
    return fail(PGEE_ARGUMENT, "quantize.symmetric is %d, expected 0 or 1", q->symmetric);
  if (q->mode == 0)
    return q->q || q->m || q->b || q->row_scale || q->row_zero ? fail(PGEE_ARGUMENT, "quantize has tensors but no mode")
                                                               : PGEE_OK;
  TRY(q->mode == PGEE_STATIC ? static_check(q, K) : dynamic_check(q, like, K));
  TRY(expect_output_like(q->q, "quantize.q", PGEE_U8, like, K));
  return expect_u8_stride(q->q, "quantize.q");
}

quantizer quantizer_lower(const pgee_quantizer *q) {
  quantizer k = {.mode = QUANTIZE_NONE};
  if (q->mode == 0)
    return k;
  k.mode = q->mode == PGEE_STATIC ? QUANTIZE_STATIC : QUANTIZE_DYNAMIC;
  k.symmetric = q->symmetric;
  k.mul = tensor_floats(q->m);
  k.add = tensor_floats(q->b);
  k.zero = q->zero;
  k.lo = q->symmetric ? -127 : -q->zero;
  k.hi = q->symmetric ? 127 : 255 - q->zero;
  k.q = q->q->data;
  k.ldq = q->q->stride;
  k.row_scale = tensor_floats(q->row_scale);
  k.row_zero = q->row_zero ? q->row_zero->data : NULL;
  return k;
}
