/* quant.c: smoothing factors, scales and multipliers. They are computed once for each weight, never during a run.
 *
 * The power in SmoothQuant's s = xmax^alpha / wmax^(1-alpha) is 2^(alpha log2 xmax - (1 - alpha) log2 wmax), in double
 * with polynomials of our own, rounded once to float: C libraries differ in the last bit of pow, and so would the packed
 * weights.
 */
#include <stdatomic.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/numbers.h"
#include "engine/base/status.h"
#include "engine/cpu/team.h"
#include "tensor.h"
#include "weights.h"

/* ---- Powers ------------------------------------------------------------------------------------------------------- */

/* log2 of a positive normal double. x = 2^e m with m in [sqrt(1/2), sqrt(2)), log m = 2 atanh t with t = (m - 1) / (m + 1), |t|
 * < 0.172: the series to t^21 is exact to 2^-57. */
static double log2_of(double x) {
  static const double log2_e = 1.4426950408889634074, sqrt_2 = 1.4142135623730950488;
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  int e = (int)(bits >> 52) - 1023;
  bits = (bits & 0xfffffffffffff) | (int64_t)1023 << 52;
  double m;
  memcpy(&m, &bits, sizeof m);
  if (m > sqrt_2) {
    m /= 2;
    e++;
  }
  double t = (m - 1) / (m + 1), t2 = t * t, sum = 0;
  for (int i = 21; i >= 1; i -= 2)
    sum = sum * t2 + 1.0 / i;
  return e + 2 * t * sum * log2_e;
}

/* For |y| up to 1000. 2^y = 2^n e^r with |r| <= log(2) / 2: the series to r^14 is exact to 2^-60. */
static double exp2_of(double y) {
  static const double log_2 = 0.69314718055994530942, round = 6755399441055744.0; /* 1.5 * 2^52 */
  double n = (y + round) - round, r = (y - n) * log_2, sum = 1;
  for (int i = 14; i >= 1; i--)
    sum = 1 + sum * r / i;
  int64_t bits = ((int64_t)n + 1023) << 52;
  double power;
  memcpy(&power, &bits, sizeof power);
  return sum * power;
}

static float smooth_of(double x, double w, double alpha) {
  double s = exp2_of(alpha * log2_of(x) - (1 - alpha) * log2_of(w));
  return s < 1e-5 ? 1e-5f : s > 1e5 ? 1e5f : (float)s;
}

/* A vector F32 [K] of magnitudes: none negative, infinite or NaN. */
static int magnitudes_check(const pgee_tensor *t, const char *what, int64_t K) {
  TRY(tensor_expect(t, what, PGEE_F32, 1, K, -1));
  TRY(tensor_expect_memory(t, what));
  const float *x = t->data;
  for (int64_t k = 0; k < t->shape[0]; k++)
    if (is_nonfinite(x[k]) || x[k] < 0)
      return fail(PGEE_ARGUMENT, "%s, channel %lld (counted from 1) is %g, expected a magnitude", what, (long long)k + 1,
                  (double)x[k]);
  return PGEE_OK;
}

/* ---- Smoothing ---------------------------------------------------------------------------------------------------- */

int pgee_smooth(pgee_tensor *s, const pgee_tensor *xmax, const pgee_tensor *wmax, double alpha) {
  NEED(s, xmax, wmax);
  TRY(tensor_expect_output(s, "s", PGEE_F32, 1, -1, -1));
  TRY(magnitudes_check(xmax, "xmax", s->shape[0]));
  TRY(magnitudes_check(wmax, "wmax", s->shape[0]));
  if (!(alpha >= 0 && alpha <= 1))
    return fail(PGEE_ARGUMENT, "alpha is %g, expected 0 to 1", alpha);
  const float *x = xmax->data, *w = wmax->data;
  unsigned before = team_float_default();
  for (int64_t k = 0; k < s->shape[0]; k++)
    ((float *)s->data)[k] = x[k] == 0 || w[k] == 0 ? 1 : smooth_of(x[k], w[k], alpha);
  team_float_restore(before);
  return PGEE_OK;
}

typedef struct absmax {
  const pgee_tensor *const *weights;
  int count;
  int64_t K;
  float *most;    /* [K] */
  int64_t stride; /* bytes of a thread's scratch */
  _Atomic int nonfinite;
} absmax;

/* Each thread takes the maximum over its part of the rows, in the second half of its scratch memory. Then each thread combines
 * the results of all threads for its part of the channels. */
static void channel_absmax(void *work, const context *c) {
  absmax *a = work;
  float *row = (float *)c->scratch, *most = row + a->K;
  int64_t rows = 0, first, last;
  uint32_t bad = 0;
  for (int i = 0; i < a->count; i++)
    rows += a->weights[i]->shape[0];
  team_share(c, rows, &first, &last);
  memset(most, 0, (size_t)a->K * sizeof *most);
  for (int64_t n = first; n < last; n++) {
    weights_row(row, a->weights, n);
    for (int64_t k = 0; k < a->K; k++) {
      float v = magnitude(row[k]);
      bad |= nonfinite_bit(v);
      most[k] = v > most[k] ? v : most[k];
    }
  }
  if (bad >> 31)
    a->nonfinite = 1;
  team_barrier(c);
  if (a->nonfinite)
    return;
  team_share(c, a->K, &first, &last);
  for (int64_t k = first; k < last; k++) {
    float v = 0;
    for (int t = 0; t < c->threads; t++) {
      float other = ((const float *)(c->shared + t * a->stride))[a->K + k];
      v = other > v ? other : v;
    }
    a->most[k] = v;
  }
}

int pgee_channel_absmax(pgee_tensor *wmax, const pgee_tensor *const *weights, int count) {
  NEED(wmax, weights);
  TRY(weights_check(weights, count));
  absmax a = {.weights = weights, .count = count, .K = weights[0]->shape[1]};
  TRY(tensor_expect_output(wmax, "wmax", PGEE_F32, 1, a.K, -1));
  TRY(tensor_expect_memory(wmax, "wmax"));
  a.most = wmax->data;
  a.stride = round_up(2 * a.K * (int64_t)sizeof(float), 64);
  int threads;
  TRY(pgee_threads(&threads));
  char *scratch = mem_array(threads, a.stride);
  int status = scratch ? team_run(channel_absmax, &a, threads, NULL, scratch, a.stride) : PGEE_MEMORY;
  mem_free(scratch);
  if (status == PGEE_OK && a.nonfinite)
    status = weights_nonfinite(weights, count, NULL);
  return status;
}

/* ---- Scales ------------------------------------------------------------------------------------------------------- */

int pgee_range_scale(double lo, double hi, int symmetric, float *scale, int32_t *zero) {
  NEED(scale, zero);
  if (!(lo <= 0 && hi >= 0 && hi - lo <= 3.4028234663852886e38))
    return fail(PGEE_ARGUMENT, "a range from %g to %g, expected finite floats around 0", lo, hi);
  unsigned before = team_float_default();
  float s = usable_scale((float)(symmetric ? (-lo > hi ? -lo : hi) / 127 : (hi - lo) / 255));
  double z = (-lo / (double)s + 6755399441055744.0) - 6755399441055744.0; /* 1.5 * 2^52: to the nearest, ties to even */
  team_float_restore(before);
  *scale = s;
  *zero = symmetric ? 128 : z > 255 ? 255 : (int32_t)z;
  return PGEE_OK;
}

int pgee_quantize_multiplier(pgee_tensor *m, float scale, const pgee_tensor *s) {
  NEED(m);
  TRY(tensor_expect_output(m, "m", PGEE_F32, 1, -1, -1));
  if (!(scale > 0) || !is_normal(scale) || !is_normal(1.0f / scale))
    return fail(PGEE_ARGUMENT, "scale is %g, expected a positive float that has a reciprocal", (double)scale);
  if (s)
    TRY(magnitudes_check(s, "s", m->shape[0]));
  for (int64_t k = 0; s && k < m->shape[0]; k++)
    if (!is_normal(((const float *)s->data)[k]))
      return fail(PGEE_ARGUMENT, "s, channel %lld (counted from 1) is %g, expected a positive number", (long long)k + 1,
                  (double)((const float *)s->data)[k]);
  const float most = 3.40282346638528859812e38f; /* the largest float: 0 times it is 0, while 0 times infinity is NaN */
  unsigned before = team_float_default();
  for (int64_t k = 0; k < m->shape[0]; k++) {
    float product = (1.0f / scale) * (s ? 1.0f / ((const float *)s->data)[k] : 1.0f);
    ((float *)m->data)[k] = product > most ? most : product;
  }
  team_float_restore(before);
  return PGEE_OK;
}

/* ---- Shift --------------------------------------------------------------------------------------------------------- */

/* A vector F32 [K] without NaN and infinities. */
static int finite_check(const pgee_tensor *t, const char *what, int64_t K) {
  TRY(tensor_expect(t, what, PGEE_F32, 1, K, -1));
  TRY(tensor_expect_memory(t, what));
  const float *x = t->data;
  for (int64_t k = 0; k < t->shape[0]; k++)
    if (is_nonfinite(x[k]))
      return fail(PGEE_ARGUMENT, "%s, channel %lld (counted from 1) is %s, expected a finite number", what, (long long)k + 1,
                  nonfinite_name(x[k]));
  return PGEE_OK;
}

int pgee_shift_addend(pgee_tensor *b, const pgee_tensor *z, const pgee_tensor *m) {
  NEED(b, z, m);
  TRY(tensor_expect_output(b, "b", PGEE_F32, 1, -1, -1));
  TRY(finite_check(z, "z", b->shape[0]));
  TRY(finite_check(m, "m", b->shape[0]));
  const float most = 3.40282346638528859812e38f; /* with infinity, fma could give NaN */
  unsigned before = team_float_default();
  for (int64_t k = 0; k < b->shape[0]; k++) {
    float product = -((const float *)z->data)[k] * ((const float *)m->data)[k];
    ((float *)b->data)[k] = product > most ? most : product < -most ? -most : product;
  }
  team_float_restore(before);
  return PGEE_OK;
}

typedef struct shifted_bias {
  const pgee_tensor *const *weights;
  const float *z, *bias; /* bias may be NULL */
  float *y;
  int64_t N, K;
} shifted_bias;

/* The product of two floats is exact in double. */
static void shift_rows(void *work, const context *c) {
  const shifted_bias *s = work;
  float *row = (float *)c->scratch;
  int64_t first, last;
  team_share(c, s->N, &first, &last);
  for (int64_t n = first; n < last; n++) {
    double sum = 0;
    weights_row(row, s->weights, n);
    for (int64_t k = 0; k < s->K; k++)
      sum += (double)row[k] * (double)s->z[k];
    s->y[n] = (float)((s->bias ? (double)s->bias[n] : 0.0) + sum);
  }
}

int pgee_shift_bias(pgee_tensor *y, const pgee_tensor *const *weights, int count, const pgee_tensor *z, const pgee_tensor *bias) {
  NEED(y, weights, z);
  TRY(weights_check(weights, count));
  shifted_bias s = {.weights = weights, .N = weights_rows(weights, count), .K = weights[0]->shape[1]};
  TRY(tensor_expect_output(y, "y", PGEE_F32, 1, s.N, -1));
  TRY(tensor_expect_memory(y, "y"));
  TRY(finite_check(z, "z", s.K));
  if (bias)
    TRY(finite_check(bias, "bias", s.N));
  s.z = z->data;
  s.bias = bias ? bias->data : NULL;
  s.y = y->data;
  int threads;
  TRY(pgee_threads(&threads));
  int64_t bytes = round_up(s.K * (int64_t)sizeof(float), 64);
  char *scratch = mem_array(threads, bytes);
  int status = scratch ? team_run(shift_rows, &s, threads, NULL, scratch, bytes) : PGEE_MEMORY;
  mem_free(scratch);
  return status == PGEE_OK ? finite_check(y, "y", s.N) : status;
}
