/* amx_body.h: the AMX kernel, a tile of up to 32 rows by 64 channels, alone or in one instruction stream with the epilogue of
 * another tile. amx.c compiles it for the CPU's tile instructions, amx_model.c for a portable model of them; both define NAME(f)
 * and EPILOGUE, epilogue_s32 of their row of the table, and include a v16_*.h and functions.h.
 *
 * A tile register holds 16 rows of 64 bytes: 16 rows of 64 inputs, a block's 16 groups of 16 channels as they lie in the panel,
 * or 16 x 16 sums. Up to 16 rows, A goes over all 64 channels at once; above, two A over 32 channels, twice:
 *
 *        B0  B1  B0  B1               B0  B1
 *    A0 | 0 | 1 | 2 | 3 |         A0 | 0 | 1 |
 *                                 A1 | 2 | 3 |       0 to 3: the accumulators' registers
 *
 * Three limits decide the speed. All are measured on Granite Rapids.
 * - A product takes 16 cycles. Four products load four tiles. If all four came from the second-level cache, the core would need 64
 *   bytes a cycle, but this cache delivers 45. Therefore the rows stay in the first-level cache: the kernel loads weights with
 *   tileloaddt1, which does not evict the rows, and cuts K into spans of at most 16 blocks (32 KiB of 32 rows). The caller runs
 *   several panels one after another on the same rows, as many as stay in the second-level cache (group_bytes in kernels.h).
 * - The core holds about two tiles that wait to be stored. A third one stops it from issuing products. Therefore sums stay in
 *   their registers, and each register is stored just before a product needs it. This holds across calls, too (flush_tiles in
 *   kernels.h).
 * - While products run, the core multiplies, converts and compares only 16 floats a cycle, and it looks about 100 instructions
 *   ahead. Therefore one row of the epilogue follows after every few products.
 *
 * The last row of A and C is configured exactly, so nothing past row m is read or written. configure prepares the registers for
 * products of m rows and release clears them; the caller calls both (kernels.h), so one configuration serves many products.
 */
#include "amx_tiles.h"
#include "finish.h"
#include "layout.h"

/* Macros: an intrinsic takes its registers as text. */
#define A0 4
#define A1 5
#define B0 6
#define B1 7

/* Rows of the registers for up to 16 rows (A1 is not used) and for m = 16 + `below` rows. */
#define SHORT(m)                                                                                 \
  {                                                                                              \
    .palette = 1, .bytes = {64, 64, 64, 64, 64, 0, 64, 64}, .rows = { m, m, m, m, m, 0, 16, 16 } \
  }
#define TALL(below)                                                                                              \
  {                                                                                                              \
    .palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = { 16, 16, below, below, 16, below, 16, 16 } \
  }
#define SIXTEEN(shape)                                                                                                       \
  shape(1), shape(2), shape(3), shape(4), shape(5), shape(6), shape(7), shape(8), shape(9), shape(10), shape(11), shape(12), \
      shape(13), shape(14), shape(15), shape(16)
static const _Alignas(64) tile_configuration configurations[MAX_TILE_M] = {SIXTEEN(SHORT), SIXTEEN(TALL)};

void NAME(configure_tiles)(int m) { tile_config(&configurations[m - 1]); }
void NAME(release_tiles)(void) { tile_release(); }

void NAME(prepare_panel)(panel_constants *panel, const epilogue *e, int64_t n0) { lay_out_panel(panel, e, n0); }

/* ---- The epilogue of the tile before, a row after every few products ------------------------------------------------ */

typedef struct finisher {
  const int32_t *c; /* of the next row */
  char *row;
  int64_t ld; /* bytes from one row of results to the next */
  const float *row_scale;
  const panel_constants *panel;
  const float (*pieces)[16];
  int64_t rows, products, due; /* `rows` rows are spread evenly over so many products */
} finisher;

INLINE finisher finisher_of(const pending_tile *p, int64_t products, const int kind) {
  finisher f = {.products = products};
  if (kind == NONE)
    return f;
  f.c = p->c;
  f.row = results_of(p, &f.ld, kind);
  f.row_scale = kind >= ROWS_TO_F32 ? p->e->row_scale + p->t0 : NULL;
  f.panel = p->panel;
  f.pieces = pieces_of(p->e);
  f.rows = p->m;
  return f;
}

INLINE void finish_row(finisher *f, const int kind) {
  v16 a = finished(f->c, 0, f->panel, f->pieces, f->row_scale, kind, gelu_overlapped);
  v16 b = finished(f->c + 16, 16, f->panel, f->pieces, f->row_scale, kind, gelu_overlapped);
  v16 c = finished(f->c + 32, 32, f->panel, f->pieces, f->row_scale, kind, gelu_overlapped);
  v16 d = finished(f->c + 48, 48, f->panel, f->pieces, f->row_scale, kind, gelu_overlapped);
  if (is_float(kind)) {
    float *y = (float *)(void *)f->row;
    vstore(y, a, 16), vstore(y + 16, b, 16), vstore(y + 32, c, 16), vstore(y + 48, d, 16);
  } else
    vstore_rounded((uint8_t *)f->row, a, b, c, d, (int32_t)f->panel->lo, (int32_t)f->panel->hi, f->panel->zero);
  f->c += PANEL;
  f->row += f->ld;
  if (kind >= ROWS_TO_F32) /* else it is NULL */
    f->row_scale++;
}

/* What is due after a product. */
INLINE void finish_some(finisher *f, const int kind) {
  if (kind == NONE)
    return;
  for (f->due += f->rows; f->due >= f->products; f->due -= f->products)
    finish_row(f, kind);
}

/* ---- Products ------------------------------------------------------------------------------------------------------- */

/* Of so many groups. */
INLINE void fetch(prefetch *next, int groups) {
  const int8_t *end = next->from + groups * next->step;
  for (; next->from < end; next->from += 64)
    __builtin_prefetch(next->from, 0, 2);
}

/* The operands of a span of K. */
typedef struct operands {
  const uint8_t *a;
  int64_t lda;
  const int8_t *b;
  int64_t blocks;
} operands;

/* Accumulator i, which holds column `from` and 15 more of a tile. Its sums go to `before`, if that is not NULL, and it becomes
 * zero, or what is at c. */
#define MOVE(i, from)                            \
  do {                                           \
    if (before)                                  \
      tile_store(i, before + (from), PANEL * 4); \
    if (first)                                   \
      tile_zero(i);                              \
    else                                         \
      tile_load(i, c + (from), PANEL * 4);       \
  } while (0)

/* Rows are finished from the second block of a call on: the first one stores the last sums of the tile before. */
#define PRODUCT(i, A, B)       \
  do {                         \
    tile_dpbusd(i, A, B);      \
    if (k > 0 || !call_begins) \
      finish_some(f, kind);    \
  } while (0)

/* Up to 16 rows. */
INLINE void one_by_four(int32_t *c, operands o, int32_t *before, prefetch *next, finisher *f, const int kind) {
  const int first = 1, call_begins = 1;
  for (int64_t k = 0; k < o.blocks; k++, o.a += BLOCK_K, o.b += BLOCK_BYTES) {
    fetch(next, 16);
    tile_load(A0, o.a, o.lda);
    tile_load_once(B0, o.b, GROUP_BYTES);
    tile_load_once(B1, o.b + 64, GROUP_BYTES);
    if (k == 0)
      MOVE(0, 0);
    PRODUCT(0, A0, B0);
    if (k == 0)
      MOVE(1, 16);
    PRODUCT(1, A0, B1);
    tile_load_once(B0, o.b + 128, GROUP_BYTES);
    tile_load_once(B1, o.b + 192, GROUP_BYTES);
    if (k == 0)
      MOVE(2, 32);
    PRODUCT(2, A0, B0);
    if (k == 0)
      MOVE(3, 48);
    PRODUCT(3, A0, B1);
  }
}

/* 17 to 32 rows of 32 channels, a span of K: the first one, or one that adds to c. */
INLINE void half(int32_t *c, operands o, int32_t *before, int first, int call_begins, prefetch *next, finisher *f,
                 const int kind) {
  for (int64_t k = 0; k < o.blocks; k++, o.a += BLOCK_K, o.b += BLOCK_BYTES) {
    fetch(next, 8);
    tile_load_once(B0, o.b, GROUP_BYTES);
    tile_load_once(B1, o.b + 64, GROUP_BYTES);
    tile_load(A0, o.a, o.lda);
    tile_load(A1, o.a + TILE_ROWS * o.lda, o.lda);
    if (k == 0)
      MOVE(0, 0);
    PRODUCT(0, A0, B0);
    if (k == 0)
      MOVE(2, TILE_ROWS * PANEL);
    PRODUCT(2, A1, B0);
    if (k == 0)
      MOVE(1, 16);
    PRODUCT(1, A0, B1);
    if (k == 0)
      MOVE(3, TILE_ROWS * PANEL + 16);
    PRODUCT(3, A1, B1);
  }
}

enum { SPAN_BLOCKS = 16 };

/* 17 to 32 rows: for each span of K the left half, then the right one. `before`: the right half of another tile, or NULL. */
INLINE void two_by_two(int32_t *c, operands all, int32_t *before, prefetch *next, finisher *f, const int kind) {
  int64_t spans = (all.blocks + SPAN_BLOCKS - 1) / SPAN_BLOCKS;
  for (int64_t i = 0; i < 2 * spans; i++) {
    int64_t side = i % 2, from = all.blocks * (i / 2) / spans, to = all.blocks * (i / 2 + 1) / spans;
    operands o = {all.a + from * BLOCK_K, all.lda, all.b + from * BLOCK_BYTES + side * 128, to - from};
    half(c + side * 32, o, before, i < 2, i == 0, next, f, kind);
    before = c + side * 32;
  }
}

/* Where the sums that a call leaves in the registers belong. */
INLINE int32_t *last_sums(int32_t *c, int m) { return m <= TILE_ROWS ? c : c + 32; }

INLINE void multiply(int32_t *c, operands o, int m, prefetch next, const pending_tile *p, const int kind) {
  int32_t *before = p && p->in_tiles ? last_sums(p->c, m) : NULL;
  finisher f = finisher_of(p, (m <= TILE_ROWS ? 4 : 8) * o.blocks - 4, kind);
  if (m <= TILE_ROWS)
    one_by_four(c, o, before, &next, &f, kind);
  else
    two_by_two(c, o, before, &next, &f, kind);
  if (kind != NONE)
    for (const int32_t *end = p->c + p->m * PANEL; f.c < end;)
      finish_row(&f, kind);
}

void NAME(flush_tiles)(int32_t *c, int m) {
  int32_t *last = last_sums(c, m);
  tile_store(0, last, PANEL * 4);
  tile_store(1, last + 16, PANEL * 4);
  if (m <= TILE_ROWS) {
    tile_store(2, last + 32, PANEL * 4);
    tile_store(3, last + 48, PANEL * 4);
  } else {
    tile_store(2, last + TILE_ROWS * PANEL, PANEL * 4);
    tile_store(3, last + TILE_ROWS * PANEL + 16, PANEL * 4);
  }
}

void NAME(gemm_u8s8)(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, prefetch next) {
  multiply(c, (operands){a, lda, b, kblocks}, m, next, NULL, NONE);
  NAME(flush_tiles)(c, m);
}

#define OVERLAPPED(kind)                                                                               \
  static void overlapped_##kind(int32_t *c, operands o, int m, prefetch next, const pending_tile *p) { \
    multiply(c, o, m, next, p, kind);                                                                  \
  }
OVERLAPPED(NONE)
OVERLAPPED(TO_F32)
OVERLAPPED(TO_U8)
OVERLAPPED(GELU_TO_U8)
OVERLAPPED(GELU_SHIFTED_TO_U8)
OVERLAPPED(ROWS_TO_F32)
OVERLAPPED(ROWS_TO_U8)
OVERLAPPED(ROWS_GELU_TO_F32)

void NAME(gemm_u8s8_overlapped)(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t kblocks, int m, prefetch next,
                                const pending_tile *p) {
  static void (*const overlapped[])(int32_t *, operands, int, prefetch, const pending_tile *) = {
      [NONE] = overlapped_NONE,
      [TO_F32] = overlapped_TO_F32,
      [TO_U8] = overlapped_TO_U8,
      [GELU_TO_U8] = overlapped_GELU_TO_U8,
      [GELU_SHIFTED_TO_U8] = overlapped_GELU_SHIFTED_TO_U8,
      [ROWS_TO_F32] = overlapped_ROWS_TO_F32,
      [ROWS_TO_U8] = overlapped_ROWS_TO_U8,
      [ROWS_GELU_TO_F32] = overlapped_ROWS_GELU_TO_F32,
  };
  int kind = is_narrow(p) ? kind_of(p) : NONE;
  overlapped[kind](c, (operands){a, lda, b, kblocks}, m, next, p);
  if (kind == NONE && p->e)
    EPILOGUE(p->e, p->c, PANEL, p->t0, p->m, p->n0, p->n);
}
