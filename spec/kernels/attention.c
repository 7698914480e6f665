/* attention.c: one head of attention, an ISA against the reference bit by bit, the reference against plain loops in double. */
#include "floats.h"

enum { GAP = 5 };

typedef struct attention_case {
  int S, D;
  int y, quantized;
  int fill;
  uint32_t seed;
  int step; /* queries in one call; 0: all */
  int biased;
  int shifted; /* the quantizer adds */
} attention_case;

typedef struct attention_io {
  block q, k, v, mul, add, bias, y, u;
} attention_io;

static attention_io io_new(const attention_case *c) {
  int64_t n = (int64_t)(c->S - 1) * (c->D + GAP) + c->D;
  return (attention_io){block_filled(n, c->fill, c->seed),         block_filled(n, c->fill, c->seed + 1),
                        block_filled(n, c->fill, c->seed + 2),     block_filled(c->D, ORDINARY, c->seed + 3),
                        block_filled(c->D, ORDINARY, c->seed + 5), block_filled(2 * (int64_t)c->S - 1, ORDINARY, c->seed + 4),
                        block_new((int64_t)c->S * (c->D + GAP)),   block_bytes((int64_t)c->S * (c->D + GAP))};
}
static void io_free(attention_io io) {
  block_free(io.q), block_free(io.k), block_free(io.v), block_free(io.mul), block_free(io.add), block_free(io.bias),
      block_free(io.y), block_free(io.u);
}

static float factor(const attention_case *c) { return 1.0f / sqrtf((float)c->D); }

/* The bias of a key at distance 0 from its query. */
static const float *bias_of(const attention_case *c, const attention_io *io) { return c->biased ? io->bias.f + c->S - 1 : NULL; }

static void run(int isa, const attention_case *c, const attention_io *io) {
  int64_t ld = c->D + GAP;
  block scratch = block_bytes((4 * attention_scratch(c->S, c->D) + 63) / 64 * 64);
  attention a = {.q = io->q.f,
                 .k = io->k.f,
                 .v = io->v.f,
                 .ld = ld,
                 .S = c->S,
                 .D = c->D,
                 .scale = factor(c),
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
    kernels_for(isa)->attention_f32(&a, t, t + m < c->S ? t + m : c->S, scratch.f);
  block_free(scratch);
}

/* 1 if the ISA, called as c->step says, gives the bits of the reference called once. corrupt: one bit of what came out is
 * flipped. */
PUBLIC int spec_attention_equal(int isa, const attention_case *c, int corrupt, char *why, int64_t bytes) {
  int64_t n = (int64_t)c->S * (c->D + GAP);
  attention_case once = *c;
  once.step = 0;
  attention_io got = io_new(c), want = io_new(c);
  run(isa, c, &got);
  run(PGEE_REF, &once, &want);
  if (corrupt && c->y)
    got.y.bits[0] ^= 1;
  else if (corrupt)
    got.u.u[0] ^= 1;
  int ok = same_floats(got.y, want.y, n, "y", why, bytes) && same_bytes(got.u, want.u, n, "q", why, bytes);
  io_free(got), io_free(want);
  return ok;
}

/* The reference's largest error: of y relative to max(1, |y|), of q in levels before rounding. */
PUBLIC void spec_attention_error(const attention_case *c, double *worst_y, double *worst_q) {
  int64_t S = c->S, D = c->D, ld = D + GAP;
  attention_io io = io_new(c);
  double *p = malloc((size_t)S * sizeof *p);
  *worst_y = *worst_q = 0;
  run(PGEE_REF, c, &io);
  for (int64_t t = 0; t < S; t++) {
    double top = -INFINITY, sum = 0;
    for (int64_t s = 0; s < S; s++) {
      p[s] = 0;
      for (int64_t d = 0; d < D; d++)
        p[s] += (double)io.q.f[t * ld + d] * io.k.f[s * ld + d] * factor(c);
      p[s] += c->biased ? io.bias.f[s - t + S - 1] : 0;
      top = fmax(top, p[s]);
    }
    for (int64_t s = 0; s < S; s++)
      sum += p[s] = exp(p[s] - top);
    for (int64_t d = 0; d < D; d++) {
      double y = 0;
      for (int64_t s = 0; s < S; s++)
        y += p[s] / sum * io.v.f[s * ld + d];
      if (c->y)
        see(worst_y, fabs(io.y.f[t * ld + d] - y) / fmax(1, fabs(y)));
      if (c->quantized)
        see(worst_q, fabs(io.u.u[t * ld + d] - 100 - fmin(fmax(y * io.mul.f[d] + (c->shifted ? io.add.f[d] : 0), -100), 155)));
    }
  }
  free(p);
  io_free(io);
}

PUBLIC uint64_t spec_attention_digest(int isa, const attention_case *c, uint64_t h) {
  attention_io io = io_new(c);
  run(isa, c, &io);
  h = digest_words(h, io.y.bits, (int64_t)c->S * (c->D + GAP));
  for (int64_t i = 0; i < (int64_t)c->S * (c->D + GAP); i++)
    h = (h ^ io.u.u[i]) * 0x100000001b3u;
  io_free(io);
  return h;
}
