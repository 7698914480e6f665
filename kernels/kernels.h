/* kernels.h: the contract of each operator's kernels, and the table that has one row of kernels for each instruction set (ISA).
 *
 * A kernel takes raw pointers. It allocates nothing, keeps no state, starts no thread and cannot fail. The caller has checked all
 * arguments. All kernels of one operator compute the same bits (ARITHMETIC.md fixes the order of every float operation), so only
 * speed decides which row of the table runs. list.h says which kernels a row has.
 *
 * Packed INT8 weights (gemm_u8s8/layout.h draws them): s8 [N/64][K/64][16][64][4], N and K padded with zeros to multiples of 64. A
 * panel is the part [K/64][16][64][4] of 64 output channels. Packed BF16 weights: gemm_bf16/layout.h. Packed FP32 weights: [N/64][K16][64], K padded with zeros to 16.
 * Activations: rows of u8 are readable up to K rounded up to 64, because the kernels multiply what lies there by zero. Rows of F32
 * end at K.
 */
#ifndef PERIGEE_KERNELS_H
#define PERIGEE_KERNELS_H
#include "arguments.h"

typedef struct kernels {
  int isa; /* PGEE_REF ... */

  /* ---- Products ---------------------------------------------------------------------------------------------------- */

  /* Rows of a tile. tile_m is the fastest number. tile_max is tile_m or one more: use the extra row where a tile of one row would
   * be left over. A number of rows that is no multiple of tile_grain costs as much as the next multiple. */
  int tile_m, tile_max, tile_grain;
  /* Panels of this many bytes together stay in the second-level cache, so each tile of rows is multiplied by all of them in turn. 0:
   * each panel is multiplied by all tiles before the next panel. */
  int64_t group_bytes;

  /* c[m][64] = a[m][K] times one panel `b` of kblocks = K/64 (rounded up) blocks, exact in int32. m is 1 to tile_max. c is aligned to
   * 64 bytes and has rows of 64. a has rows of lda bytes. */
  void (*gemm_u8s8)(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, prefetch next);

  /* Software pipelining. gemm_u8s8_overlapped multiplies one tile and, in the same instruction stream, runs the epilogue of the tile
   * `p`, whose sums p->c must not overlap c. prepare_panel lays out the constants of output channels n0 to n0 + 64 for that. Both are
   * NULL for ISAs that gain nothing by overlapping. engine/ops/gemm_driver.c calls all functions of this group. */
  void (*prepare_panel)(panel_constants *panel, const epilogue *e, int64_t n0);
  void (*gemm_u8s8_overlapped)(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, prefetch next,
                               const pending_tile *p);
  /* AMX only, else NULL. The tile registers are a state of the thread, and the caller keeps track of it. It calls configure_tiles(m)
   * before the first product and whenever m changes. It calls release_tiles() after the last product and before the thread runs
   * other code, because tiles in use make signals, task switches and forks save 8 KiB more. Kernels of other operators may run in
   * between. attention_u8s8 configures and releases the tiles by itself. */
  void (*configure_tiles)(int m);
  void (*release_tiles)(void);
  /* AMX only, else NULL. gemm_u8s8_overlapped leaves the last sums of its tile in the tile registers. flush_tiles(c, m) stores them to
   * the tile; so does the next gemm_u8s8_overlapped if its p is that tile with in_tiles set. One of the two must happen before
   * configure_tiles and release_tiles. */
  void (*flush_tiles)(int32_t *c, int m);

  /* c[m][n] = a[m][k] times b[k][n], one fma chain for each output, from +0, k ascending. m is 1 to tile_m_f32, n is 1 to 64. Rows are
   * ldc, lda, ldb floats apart. Nothing is read or written past n or k. next: NULL, or k * 16 floats that are multiplied soon (a
   * quarter of a panel), which the kernel may prefetch. Give the first four tiles of a panel the quarters of the next panel. */
  int tile_m_f32;
  void (*gemm_f32)(float *c, int64_t ldc, const float *a, int64_t lda, const float *b, int64_t ldb, int64_t k, int m, int n,
                   const float *next);

  /* c[m][64] = a[m][K] times one panel `b` of BF16 weights, of kblocks = K/32 (rounded up) blocks, summed as ARITHMETIC.md says. m is 1
   * to MAX_TILE_M for every ISA. c is aligned to 64 bytes and has rows of 64. a has rows of lda numbers, of which 32 kblocks are read;
   * those past K are zeros. On AMX the caller uses configure_tiles(m) and release_tiles() as for gemm_u8s8. */
  void (*gemm_bf16)(float *c, const uint16_t *a, int64_t lda, const uint16_t *b, int64_t kblocks, int m);
  /* to[k] = the BF16 number nearest to x[k], ties to even, for k below width; zeros from there to padded. */
  void (*round_bf16)(uint16_t *to, const float *x, int64_t width, int64_t padded);

  /* ---- Rows -------------------------------------------------------------------------------------------------------- */

  /* The epilogue of rows t0 to t0 + m and output channels n0 to n0 + n (n <= 64). c: the tile of sums, [m][ldc]. */
  void (*epilogue_s32)(const epilogue *e, const int32_t *c, int64_t ldc, int64_t t0, int m, int64_t n0, int n);
  void (*epilogue_f32)(const epilogue *e, const float *c, int64_t ldc, int64_t t0, int m, int64_t n0, int n);

  /* Rows begin to end (end excluded). */
  void (*norm)(const norm *a, int64_t begin, int64_t end);
  void (*quantize)(const quantizer *a, const float *x, int64_t ldx, int64_t width, int64_t begin, int64_t end);
  /* ranges[t] = { min(0, min x * mul), max(0, max x * mul) } */
  void (*range)(float *ranges, const float *x, int64_t ldx, const float *mul, int64_t width, int64_t begin, int64_t end);

  /* y[width] = word + position + type. position and type may be NULL. */
  void (*embed)(float *y, const table_row *word, const table_row *position, const table_row *type, int64_t width);
  /* y[width] from x[rows][ldx] by mode PGEE_POOL_*, rows in ascending order for each channel. */
  void (*pool)(float *y, const float *x, int64_t ldx, int64_t rows, int64_t width, int mode);
  /* y = x / max(Euclidean norm of x, 1e-12) */
  void (*unit)(float *y, const float *x, int64_t width);
  /* Lowers min[width] and raises max[width] to hold the values of all rows of x. */
  void (*minmax)(float *min, float *max, const float *x, int64_t ldx, int64_t rows, int64_t width);

  /* ---- Attention --------------------------------------------------------------------------------------------------- */

  /* Queries q0 to q1 (q1 excluded). scratch: attention_scratch(S, D) floats, aligned to 64 bytes. */
  void (*attention_f32)(const attention *a, int64_t q0, int64_t q1, float *scratch);
  /* scratch: attention_u8s8_scratch(S, D) bytes, aligned to 64. */
  void (*attention_u8s8)(const attention_u8s8 *a, int64_t q0, int64_t q1, void *scratch);
} kernels;

/* Floats of scratch that attention_f32 needs. */
int64_t attention_scratch(int64_t S, int64_t D);
/* Bytes of scratch that attention_u8s8 needs. */
int64_t attention_u8s8_scratch(int64_t S, int64_t D);

/* The row of an ISA. The caller has checked that the CPU runs it. NULL if `isa` is no ISA or this build has no kernels for it. */
const kernels *kernels_for(int isa);

#endif
