/* arguments.h: the arguments of the kernels. kernels.h has the contracts.
 *
 * Shapes: N output channels, K input channels, H width of a row, S tokens of a sequence, D size of a head. A matrix [rows][ld] has
 * its rows `ld` elements apart. Vectors are indexed by the output channel n or by the row t.
 */
#ifndef PERIGEE_KERNELS_ARGUMENTS_H
#define PERIGEE_KERNELS_ARGUMENTS_H
#include <stdint.h>

enum { PANEL = 64 };         /* output channels of a panel */
enum { MAX_TILE_M = 32 };    /* the largest number of rows in a tile of any kernel */
enum { MAX_PREFETCH = 128 }; /* the largest `step` of a prefetch */

/* One row of an embedding table, [width] values of type PGEE_F32, F16, BF16 or S8, aligned or not. An S8 value q stands for
 * float(q) * scale. */
typedef struct table_row {
  const void *values;
  int dtype;
  float scale; /* S8 only */
} table_row;

/* How a tile of sums becomes results, in this order:
 *   int32 sums  a = c - zero * wsum[n]            (row_zero[t] in place of zero if row_zero is not NULL)
 *               v = fma(float(a) [* row_scale[t]], scale[n], bias[n])
 *   float sums  v = c + bias[n]
 *   v = activation(v);  v = v + residual[t][n] if residual;  y[t][n] = v if y;
 *   q[t][n] = clamp(round(v * q_mul[n]), q_lo, q_hi) + q_zero if q         (round: to nearest, ties to even)
 *   if q_add is not NULL, fma(v, q_mul[n], q_add[n]) takes the place of v * q_mul[n] */
typedef struct epilogue {
  const float *scale;  /* [N] */
  const float *bias;   /* [N], never NULL */
  const int32_t *wsum; /* [N], sums of the weights of each output channel */
  int32_t zero;
  const float *row_scale;  /* [rows] or NULL */
  const int32_t *row_zero; /* [rows] or NULL */
  int activation;          /* PGEE_IDENTITY, PGEE_GELU, ... of perigee.h */
  const float *residual;   /* [rows][ld_residual] or NULL */
  int64_t ld_residual;
  float *y; /* [rows][ldy] or NULL; may be residual */
  int64_t ldy;
  uint8_t *q; /* [rows][ldq] or NULL */
  int64_t ldq;
  const float *q_mul;         /* [N] */
  const float *q_add;         /* [N] or NULL */
  int32_t q_zero, q_lo, q_hi; /* bounds before q_zero is added */
} epilogue;

/* Weights that are multiplied soon. For each 4 inputs of K, padded to 64, a kernel may prefetch the next `step` bytes of `from` into
 * the second-level cache. step is 0 to MAX_PREFETCH; 0 disables prefetching. */
typedef struct prefetch {
  const int8_t *from;
  int64_t step;
} prefetch;

/* The constants that the overlapped epilogues of one panel read. prepare_panel lays them out. */
typedef struct panel_constants {
  float lo, hi;
  int32_t zero;
  _Alignas(64) int32_t offset[PANEL];                      /* zero * wsum */
  float scale[PANEL], bias[PANEL], mul[PANEL], add[PANEL]; /* mul and add are filled only if q and q_add are not NULL */
} panel_constants;

/* A tile [m][64] of sums whose epilogue has not run yet. e NULL: there is no such tile. */
typedef struct pending_tile {
  const epilogue *e;
  int32_t *c;
  int64_t t0, n0; /* its first row and output channel */
  int m, n;
  int in_tiles;                 /* 1 if its last sums are still in the tile registers: see flush_tiles */
  const panel_constants *panel; /* filled by prepare_panel; not read if n < 64 */
} pending_tile;

/* How a row of floats becomes u8: pgee_quantizer of perigee.h. */
enum { QUANTIZE_NONE = 0, QUANTIZE_STATIC = 1, QUANTIZE_DYNAMIC = 2 };
typedef struct quantizer {
  int mode;
  int symmetric;        /* dynamic only; static says it by the bounds below */
  const float *mul;     /* [K]; NULL means 1 everywhere (dynamic only) */
  const float *add;     /* [K]; static only: x becomes fma(x, mul, add). NULL: x becomes x * mul */
  int32_t zero, lo, hi; /* static; bounds before zero is added */
  uint8_t *q;           /* [rows][ldq] */
  int64_t ldq;
  float *row_scale;    /* [rows] out, dynamic */
  int32_t *row_zero;   /* [rows] out, dynamic */
  const float *ranges; /* [rows][2]: min and max of x * mul to use; NULL: the kernel computes each row's own */
} quantizer;

/* v = x + residual; y = (v - mean) * (1 / sqrt(var + eps)) * gamma + beta; then y is quantized. */
typedef struct norm {
  const float *x, *residual; /* [rows][ldx], [rows][ld_residual] or NULL */
  int64_t ldx, ld_residual;
  const float *gamma, *beta; /* [H] */
  float eps;
  int64_t width; /* H */
  float *y;      /* [rows][ldy] or NULL; may be x or residual */
  int64_t ldy;
  quantizer quantize;
  float *scratch; /* [H] of the calling thread, used if y is NULL */
} norm;

/* One head of one sequence: y = softmax(q k^T * scale + bias) v for queries q0 to q1 (q1 excluded); scale > 0. */
typedef struct attention {
  const float *q, *k, *v; /* [S][ld] of this head */
  int64_t ld, S, D;
  float scale;
  const float *bias; /* NULL, or bias[i - j] for key i and query j, from 1 - S to S - 1; finite */
  float *y;          /* [queries][ldy] of this head from query y_begin on, or NULL */
  int64_t ldy, y_begin;
  quantizer quantize; /* static or none; q (from query y_begin on), mul and add belong to this head already */
} attention;

/* The same in INT8. A score is s = sum over d of (q - 128) (k - 128), exact. p is 255 exp(s scale + bias - max (s scale + bias)),
 * rounded to an integer as ARITHMETIC.md says. y = v_scale * sum p (v - 128) / sum p. */
typedef struct attention_u8s8 {
  const uint8_t *q, *k, *v; /* [S][ld] of this head, zero point 128; rows of q are readable up to D rounded up to 4 */
  int64_t ld, S, D;         /* S and D at most 32768 */
  float scale;              /* the scales of q and k times 1 / sqrt(D); positive and finite */
  float v_scale;            /* positive and finite */
  const float *bias;        /* as in `attention`; finite also when multiplied by log2 e */
  float *y;                 /* [queries][ldy] of this head from query y_begin on, or NULL */
  int64_t ldy, y_begin;
  quantizer quantize; /* static or none; q (from query y_begin on), mul and add belong to this head already */
} attention_u8s8;

#endif
