/* kernels.h: function types and contracts of the kernels, and the table that holds one row of them per ISA.
 *
 * Kernels know registers. They take raw pointers, allocate nothing, keep no state, start no thread and cannot fail; who calls
 * them has checked everything. All of one column compute the same bits (kernels/ARITHMETIC.md fixes the order of every
 * float operation), so a row of the table is chosen by speed alone.
 *
 * Layout of packed weights, kernels/gemm_u8s8/layout.h: s8 [N/64][K/64][16][64][4], N and K padded with zeros to 64. A panel is
 * the [K/64][16][64][4] of 64 output channels. FP32 weights: [N/64][K16][64], K padded with zeros to 16.
 * Activations: U8 rows are readable up to K rounded up to 64 (what lies there is multiplied by zero); F32 rows end at K.
 */
#ifndef PERIGEE_KERNELS_H
#define PERIGEE_KERNELS_H
#include <stdint.h>

enum { PANEL = 64 };         /* output channels of a panel */
enum { MAX_TILE_M = 32 };    /* no kernel's tile is taller */
enum { MAX_PREFETCH = 128 }; /* bytes that are fetched for each 4 inputs */

/* What becomes of a tile of accumulators before it is stored. In this order:
 *   integer  a = acc - zero * wsum[n]            (row_zero[t] in place of zero if row_zero is not NULL)
 *            v = fma(float(a) [* row_scale[t]], scale[n], bias[n])
 *   float    v = acc + bias[n]
 *   v = activation(v);  v = v + residual[t][n] if residual;  y[t][n] = v if y;
 *   q[t][n] = clamp(rne(v * q_mul[n]), q_lo, q_hi) + q_zero if q
 * Vectors are indexed by the output channel n and the row t. bias is never NULL. */
typedef struct epilogue {
  const float *scale;  /* [N] */
  const float *bias;   /* [N] */
  const int32_t *wsum; /* [N] */
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
  int32_t q_zero, q_lo, q_hi; /* bounds before q_zero is added */
} epilogue;

/* What will be multiplied soon: for each 4 inputs of K, padded to 64, a kernel may fetch the next `step` bytes of `from` into the
 * cache, step 0 to MAX_PREFETCH. */
typedef struct prefetch {
  const int8_t *from;
  int64_t step;
} prefetch;

/* What an epilogue needs of one panel, side by side. */
typedef struct panel_constants {
  float lo, hi;
  int32_t zero;
  _Alignas(64) int32_t offset[PANEL]; /* zero * wsum */
  float scale[PANEL], bias[PANEL], mul[PANEL];
} panel_constants;

/* A tile [m][64] that is multiplied and whose epilogue is still to come; e NULL: there is none. */
typedef struct pending_tile {
  const epilogue *e;
  int32_t *c;
  int64_t t0, n0; /* its first row and column */
  int m, n;
  int in_tiles;                 /* 1 if its last sums are still in the tile registers: see flush_tiles */
  const panel_constants *panel; /* by prepare_panel; not looked at if n < 64 */
} pending_tile;

/* How a row of floats becomes u8; see pgee_quantizer. */
enum { QUANTIZE_NONE = 0, QUANTIZE_STATIC = 1, QUANTIZE_DYNAMIC = 2 };
typedef struct quantizer {
  int mode;
  int symmetric;        /* dynamic only: the bounds below say it for static */
  const float *mul;     /* [K]; NULL (dynamic only) is all 1 */
  int32_t zero, lo, hi; /* static; bounds before zero is added */
  uint8_t *q;           /* [rows][ldq] */
  int64_t ldq;
  float *row_scale;    /* [rows] out, dynamic */
  int32_t *row_zero;   /* [rows] out, dynamic */
  const float *ranges; /* [rows][2] min and max of x * mul to use, or NULL: the row's own */
} quantizer;

/* v = x + residual; y = (v - mean) * (1 / sqrt(var + eps)) * gamma + beta; then y quantized. */
typedef struct norm {
  const float *x, *residual; /* [rows][ldx], [rows][ld_residual] or NULL */
  int64_t ldx, ld_residual;
  const float *gamma, *beta; /* [H] */
  float eps;
  int64_t width; /* H */
  float *y;      /* [rows][ldy] or NULL; may be x or residual */
  int64_t ldy;
  quantizer quantize;
  float *scratch; /* [H] of the calling thread, used when y is NULL */
} norm;

/* One head of one sequence. y = softmax(q k^T * scale + bias) v for queries q0 to q1 (q1 excluded); scale > 0. */
typedef struct attention {
  const float *q, *k, *v; /* [S][ld] of this head */
  int64_t ld, S, D;
  float scale;
  const float *bias; /* NULL, or of key i - query j bias[i - j], from 1 - S to S - 1; finite */
  float *y;          /* [queries][ldy] of this head from query y_begin on, or NULL */
  int64_t ldy, y_begin;
  quantizer quantize; /* static or none; q (from query y_begin on), mul are already this head's */
} attention;

/* The same in INT8. A score is s = sum over d of (q - 128) (k - 128), exact; p is 255 exp(s scale + bias - max (s scale + bias))
 * rounded to an integer (kernels/ARITHMETIC.md says how); y = v_scale * sum p (v - 128) / sum p. scale, of a score, is
 * the product of q's and k's scales and 1 / sqrt(D); it and v_scale are positive and finite. q's rows are readable up to D
 * rounded up to 4. S and D at most 32768. */
typedef struct attention_u8s8 {
  const uint8_t *q, *k, *v; /* [S][ld] of this head, zero point 128 */
  int64_t ld, S, D;
  float scale, v_scale;
  const float *bias; /* as above; times log2 e finite */
  float *y;          /* [queries][ldy] of this head from query y_begin on, or NULL */
  int64_t ldy, y_begin;
  quantizer quantize; /* static or none; q (from query y_begin on), mul are already this head's */
} attention_u8s8;

typedef struct kernels {
  int isa; /* PGEE_REF ... */

  /* c[m][64] = a[m][K] times one panel, int32, exact. m in 1..tile_max; c aligned to 64 bytes, rows of 64. a: rows of lda bytes.
   * b: the panel, kblocks = K/64 rounded up. tile_m rows are what it likes best; tile_max, as many or one more, is for what
   * would be left over; a number that is no multiple of tile_grain costs as much as the next one that is. */
  int tile_m, tile_max, tile_grain;
  /* Panels of together so many bytes stay in the second-level cache and follow each other on each tile of rows. 0: panel by
   * panel. */
  int64_t group_bytes;
  void (*gemm_u8s8)(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, prefetch next);

  /* The tile registers of AMX are a state of the thread, so the caller keeps track of it. It calls configure(m) before the first
   * product and whenever m changes, and release() after the last product, before the thread runs other code: tiles that are in
   * use make signals, task switches and forks save 8 KiB. Both are NULL where products need no such state. Kernels of other
   * columns may run in between; attention_u8s8 configures and releases by itself. */
  void (*configure_tiles)(int m);
  void (*release_tiles)(void);

  /* The same, and epilogue_s32 of another tile, whose accumulators are not c: spread over the product it costs less. prepare_panel is
   * for columns n0 to n0 + 64; call it a while before. NULL where there is nothing to win. */
  void (*prepare_panel)(panel_constants *panel, const epilogue *e, int64_t n0);
  void (*gemm_u8s8_overlapped)(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, prefetch next,
                               const pending_tile *p);
  /* If it is not NULL, gemm_u8s8_overlapped leaves the last sums of its tile in the tile registers. They must come to c before the
   * registers are configured anew or released: by flush_tiles(c, m), or by the next gemm_u8s8_overlapped, whose p is that tile with `in_tiles`
   * set. */
  void (*flush_tiles)(int32_t *c, int m);

  /* c[m][n] = a[m][k] times b[k][n], one fma chain per output from +0, k ascending. m in 1..tile_m_f32, n in 1..64, rows of ldc,
   * lda, ldb floats, nothing read or written past n or k. next: NULL, or what will be multiplied soon, k * 16 floats (a quarter
   * of a panel), which the kernel may fetch into the cache as it goes: give the first four tiles of a panel the quarters of the
   * panel that follows. */
  int tile_m_f32;
  void (*gemm_f32)(float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, int m, int n,
                   const float *next);

  /* Rows t0 to t0 + m, columns n0 to n0 + n (n <= 64) of the output. c: the tile, [m][ldc]. */
  void (*epilogue_s32)(const epilogue *e, const int32_t *c, int64_t ldc, int64_t t0, int m, int64_t n0, int n);
  void (*epilogue_f32)(const epilogue *e, const float *c, int64_t ldc, int64_t t0, int m, int64_t n0, int n);

  /* Rows begin to end. */
  void (*norm)(const norm *a, int64_t begin, int64_t end);
  void (*quantize)(const quantizer *a, const float *x, int64_t ldx, int64_t width, int64_t begin, int64_t end);
  /* ranges[t] = { min(0, min x * mul), max(0, max x * mul) } */
  void (*range)(float *ranges, const float *x, int64_t ldx, const float *mul, int64_t width, int64_t begin, int64_t end);

  /* scratch: attention_scratch(S, D) floats, aligned to 64 bytes. */
  void (*attention_f32)(const attention *a, int64_t q0, int64_t q1, float *scratch);
  /* scratch: attention_u8s8_scratch(S, D) bytes, aligned to 64. */
  void (*attention_u8s8)(const attention_u8s8 *a, int64_t q0, int64_t q1, void *scratch);

  /* y[width] = rows of dtype PGEE_F32, F16 or BF16 at word + position + type (position, type may be NULL). */
  void (*embed)(float *y, const void *word, int word_dtype, const void *position, int position_dtype, const void *type,
                int type_dtype, int64_t width);
  /* y[width] from x[rows][ldx] by PGEE_POOL_*: rows ascending for each channel. */
  void (*pool)(float *y, const float *x, int64_t ldx, int64_t rows, int64_t width, int mode);
  /* y = x / max(norm of x, 1e-12) */
  void (*unit)(float *y, const float *x, int64_t width);
  /* min[k], max[k] taken further over rows of x. */
  void (*minmax)(float *min, float *max, const float *x, int64_t ldx, int64_t rows, int64_t width);
} kernels;

/* Floats of scratch that attention_f32 needs. */
int64_t attention_scratch(int64_t S, int64_t D);
/* Bytes of scratch that attention_u8s8 needs. */
int64_t attention_u8s8_scratch(int64_t S, int64_t D);

/* The row of an ISA; the caller knows that the CPU runs it. NULL for a number that is none. */
const kernels *kernels_for(int isa);

#endif
