/* attention_u8s8.c: one head of INT8 attention, an ISA against the reference bit by bit, the reference against plain loops in
 * double. */
#include "kernels/gemm_u8s8/amx_model.h"
#include "floats.h"

enum { GAP = 5 };

/* How bytes are filled: any value but 0; 1 and 255; 128, which stands for zero; the same value everywhere. */
enum { ANY = 0, ENDS = 1, ZEROS = 2, SAME = 3 };

typedef struct attention_u8s8_case {
  int S, D;
  int y, quantized;
  int fill;
  float scale;
  uint32_t seed;
  int step; /* queries in one call; 0: all */
  int biased;
  int shifted; /* the quantizer adds */
} attention_u8s8_case;

typedef struct attention_io {
  block q, k, v, mul, add, bias, y, u;
} attention_io;

static const float v_scale = 0.03f;

/* The kernel adds this to the probability of key s before it rounds: the index of s among sixteen with its bits reversed, centred at 0. */
static double rounding(int64_t s) { return ((s & 1) * 8 + (s >> 1 & 1) * 4 + (s >> 2 & 1) * 2 + (s >> 3 & 1) - 7.5) / 16; }

static block bytes_filled(int64_t n, int64_t more, int fill, uint32_t seed) {
  block b = block_bytes(n + more);
  for (int64_t i = 0; i < n; i++) {
    uint32_t r = draw(&seed);
    b.u[i] = (uint8_t)(fill == ANY ? 1 + r % 255 : fill == ENDS ? (r & 64 ? 255 : 1) : fill == ZEROS ? 128 : 200);
  }
  return b;
}

static attention_io io_new(const attention_u8s8_case *c) {
  int64_t n = (int64_t)(c->S - 1) * (c->D + GAP) + c->D;
  return (attention_io){
      bytes_filled(n, -c->D & 3, c->fill, c->seed), bytes_filled(n, 0, c->fill, c->seed + 1),
      bytes_filled(n, 0, c->fill, c->seed + 2),     block_filled(c->D, ORDINARY, c->seed + 3),
      block_filled(c->D, ORDINARY, c->seed + 5),    block_filled(2 * (int64_t)c->S - 1, ORDINARY, c->seed + 4),
      block_new((int64_t)c->S * (c->D + GAP)),      block_bytes((int64_t)c->S * (c->D + GAP)),
  };
}
static void io_free(attention_io io) {
  block_free(io.q), block_free(io.k), block_free(io.v), block_free(io.mul), block_free(io.add), block_free(io.bias),
      block_free(io.y), block_free(io.u);
}

/* The bias of a key at distance 0 from its query. */
static const float *bias_of(const attention_u8s8_case *c, const attention_io *io) {
  return c->biased ? io->bias.f + c->S - 1 : NULL;
}

static void run(int isa, const attention_u8s8_case *c, const attention_io *io) {
  int64_t ld = c->D + GAP;
  block scratch = block_bytes(attention_u8s8_scratch(c->S, c->D));
  attention_u8s8 a = {.q = io->q.u,
                      .k = io->k.u,
                      .v = io->v.u,
                      .ld = ld,
                      .S = c->S,
                      .D = c->D,
                      .scale = c->scale,
                      .v_scale = v_scale,
                      .y = c->y ? io->y.f : NULL,
                      .ldy = ld,
                      .bias = bias_of(c, io)};
  if (c->quantized)
    a.quantize = (quantizer){.mode = QUANTIZE_STATIC,
                             .mul = io->mul.f,
                             .add = c->shifted ? io->add.f : NULL,
                             .zero = 100,
                             .lo = -100,
                             .hi = 155,
                             .q = io->u.u,
                             .ldq = ld};
  for (int64_t t = 0, m = c->step ? c->step : c->S; t < c->S; t += m)
    kernels_for(isa)->attention_u8s8(&a, t, t + m < c->S ? t + m : c->S, scratch.data);
  block_free(scratch);
}

/* 1 if the ISA, called as c->step says, gives the bits of the reference called once. corrupt: one bit of what came out is
 * flipped. */
PUBLIC int spec_attention_u8s8_equal(int isa, const attention_u8s8_case *c, int corrupt, char *why, int64_t bytes) {
  int64_t n = (int64_t)c->S * (c->D + GAP);
  attention_u8s8_case once = *c;
  once.step = 0;
  attention_io got = io_new(c), want = io_new(c);
  run(isa, c, &got);
  run(PGEE_REF, &once, &want);
  const char *fault = model_fault();
  if (corrupt && c->y)
    got.y.bits[0] ^= 1;
  else if (corrupt)
    got.u.u[0] ^= 1;
  int ok = same_floats(got.y, want.y, n, "y", why, bytes) && same_bytes(got.u, want.u, n, "q", why, bytes);
  if (fault)
    ok = 0, snprintf(why, (size_t)bytes, "%s", fault);
  io_free(got), io_free(want);
  return ok;
}

/* The largest errors of the reference. unrounded: of y against the formula with probabilities that are not rounded. rounded: of y against
 * the formula with rounded probabilities. Both are relative to the largest |v|. worst_q: of q, in levels before rounding. */
PUBLIC void spec_attention_u8s8_error(const attention_u8s8_case *c, double *unrounded, double *rounded, double *worst_q) {
  int64_t S = c->S, D = c->D, ld = D + GAP;
  attention_io io = io_new(c);
  double *p = malloc((size_t)S * sizeof *p);
  *unrounded = *rounded = *worst_q = 0;
  run(PGEE_REF, c, &io);
  for (int64_t t = 0; t < S; t++) {
    double top = -INFINITY, exact_sum = 0, sum = 0;
    for (int64_t s = 0; s < S; s++) {
      p[s] = 0;
      for (int64_t d = 0; d < D; d++)
        p[s] += ((double)io.q.u[t * ld + d] - 128) * ((double)io.k.u[s * ld + d] - 128);
      p[s] = p[s] * c->scale + (c->biased ? io.bias.f[s - t + S - 1] : 0);
      top = fmax(top, p[s]);
    }
    for (int64_t s = 0; s < S; s++) {
      p[s] = 255 * exp(p[s] - top);
      exact_sum += p[s], sum += nearbyint(p[s] + rounding(s));
    }
    for (int64_t d = 0; d < D; d++) {
      double exact = 0, y = 0;
      for (int64_t s = 0; s < S; s++) {
        double v = ((double)io.v.u[s * ld + d] - 128) * v_scale;
        exact += p[s] / exact_sum * v, y += nearbyint(p[s] + rounding(s)) / sum * v;
      }
      if (c->y)
        see(unrounded, fabs(io.y.f[t * ld + d] - exact) / (127 * v_scale));
      if (c->y)
        see(rounded, fabs(io.y.f[t * ld + d] - y) / (127 * v_scale));
      if (c->quantized)
        see(worst_q, fabs(io.u.u[t * ld + d] - 100 -
                          fmin(fmax((c->y ? io.y.f[t * ld + d] : y) * io.mul.f[d] + (c->shifted ? io.add.f[d] : 0), -100), 155)));
    }
  }
  free(p);
  io_free(io);
}

PUBLIC uint64_t spec_attention_u8s8_digest(int isa, const attention_u8s8_case *c, uint64_t h) {
  attention_io io = io_new(c);
  run(isa, c, &io);
  h = digest_words(h, io.y.bits, (int64_t)c->S * (c->D + GAP));
  for (int64_t i = 0; i < (int64_t)c->S * (c->D + GAP); i++)
    h = (h ^ io.u.u[i]) * 0x100000001b3u;
  io_free(io);
  return h;
}
