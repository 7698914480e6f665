/* tiles_amx.h: INT8 attention on AMX tiles, a block of 16 queries at a time; after amx_tiles.h, head.h and
 *
 *   to_signed(to, from, n)     n bytes, each minus 128
 *   vistore(to, x)             16 lanes; to is aligned to 64 bytes
 *   reduce16(to, x, how)       to[i] = the largest lane (REDUCE_MAX) or the sum (REDUCE_SUM) of x[i][16], 16 rows
 *   four_probabilities(p, d, c)   p of four times 16 differences from the largest score; returns their sums by lanes
 *
 * Tile instructions and vector instructions use different units of a core, so the core can overlap them. A block first finds the
 * largest score of each row. It then walks over the keys in panels of 64. For each panel, vector instructions compute the
 * probabilities, two rows at a time. Between these rows stand two kinds of tile products: the probabilities of the previous panel
 * times its values, and the next block's scores of this panel.
 *
 *   vectors   p of panel 0                       | p of panel 1              | ... of panel n | next block: p of panel 0
 *   tiles     next scores 0, last p n x values   | next scores 1, p 0 x values | ...            | next scores 0, p n x values
 *
 * Scores lie in tiles of [16 queries][16 keys], four to a panel, and p in panels of [16 queries][64 keys], so that a tile is 1 KiB
 * without gaps. The scores are a ring with one panel more than the sequence has: the next block's scores of a panel replace this
 * block's scores of the previous panel. p has two panels, which alternate. If D > 64, p has all panels, because columns past the
 * 64th are multiplied when the block is done.
 *
 * Registers: 0 to 3 sums of p times 64 columns, 4 p, 5 the queries, 6 keys or values, 7 scores. Each has 16 rows of 64 bytes, so
 * that one configuration serves all products of a head. Missing queries, and channels past D, are zeros in the copy of the
 * queries, and probabilities past the last key are zeros. Therefore the bytes that a tile reads of keys past D or of values past
 * the last key may have any value.
 */
enum { BLOCK = TILE_ROWS, TILE = 16 * 16, PANEL_P = 16 * 64 };

#define P 4
#define QUERIES 5
#define B 6
#define SCORE 7

static const tile_configuration whole_tiles = {
    .palette = 1, .bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {BLOCK, BLOCK, BLOCK, BLOCK, BLOCK, BLOCK, BLOCK, BLOCK}};

/* Parts of the scratch. */
typedef struct areas {
  int8_t *keys, *values;
  int32_t *scores;       /* [panels + 1][4][BLOCK][16] */
  uint8_t *p;            /* [panels + 1][BLOCK][64] */
  int8_t *queries;       /* [BLOCK][D_row] */
  int32_t *context;      /* [BLOCK][D_row] */
  int64_t panels, D_row; /* panels of keys; D rounded up to 64 */
} areas;

static areas areas_of(const attention_u8s8 *a, void *scratch) {
  areas s = {.keys = scratch, .panels = panels_of(a->S), .D_row = panels_of(a->D) * 64};
  s.values = s.keys + keys_bytes(a->S, a->D);
  s.scores = (int32_t *)(void *)(s.values + values_bytes(a->S, a->D));
  s.p = (uint8_t *)(s.scores + (s.panels + 1) * 4 * TILE);
  s.queries = (int8_t *)s.p + (s.panels + 1) * PANEL_P;
  s.context = (int32_t *)(void *)(s.queries + BLOCK * s.D_row);
  return s;
}

/* The queries of a block. */
typedef struct block {
  int64_t t, rows;                      /* the first one, and how many; the others up to BLOCK are zeros */
  int64_t slot;                         /* of the ring: where the scores of panel 0 are */
  row_most most[BLOCK];                 /* of each row's scores */
  _Alignas(64) int32_t sums[BLOCK][16]; /* of its probabilities, by lanes */
} block;

/* The scores of a block's panel. */
INLINE int32_t *panel_scores(const areas *s, const block *b, int64_t panel) {
  int64_t slot = b->slot + panel;
  return s->scores + (slot > s->panels ? slot - s->panels - 1 : slot) * 4 * TILE;
}

/* The block that follows b: its queries, up to q1, are copied as s8, and their first 64 channels kept in a register. */
static void next_block(const attention_u8s8 *a, const areas *s, const block *b, block *next, int64_t q1) {
  next->t = b->t + BLOCK;
  next->rows = at_most(q1 - next->t, BLOCK);
  next->slot = b->slot == 0 ? s->panels : b->slot - 1;
  if (next->rows < BLOCK || a->D % 64)
    memset(s->queries, 0, (size_t)(BLOCK * s->D_row));
  for (int64_t i = 0; i < next->rows; i++)
    to_signed(s->queries + i * s->D_row, a->q + (next->t + i) * a->ld, a->D);
  tile_barrier(); /* tiles load bytes that vector instructions stored */
  tile_load(QUERIES, s->queries, s->D_row);
}

/* ---- Products ----------------------------------------------------------------------------------------------------- */

/* Begins the scores of the copied queries, block b, and 16 keys, tile j of a panel. Returns where store_scores puts them, NULL if
 * there are no such keys. Between the two lies other work, so that the core need not wait for the product. */
INLINE int32_t *begin_scores(const attention_u8s8 *a, const areas *s, const block *b, int64_t panel, int j) {
  const int8_t *keys = s->keys + panel * packed_groups(a->D) * GROUP + j * 64;
  if (panel * 64 + j * 16 >= a->S)
    return NULL;
  tile_zero(SCORE);
  tile_load(B, keys, GROUP);
  tile_dpbssd(SCORE, QUERIES, B);
  for (int64_t d = 64; d < a->D; d += 64) {
    tile_load(P, s->queries + d, s->D_row);
    tile_load(B, keys + d / 4 * GROUP, GROUP);
    tile_dpbssd(SCORE, P, B);
  }
  return panel_scores(s, b, panel) + j * TILE;
}

INLINE void store_scores(int32_t *to) {
  if (to)
    tile_store(SCORE, to, 64);
}

/* Panels of p alternate over all blocks; if D > 64, each block has all of its own. */
INLINE uint8_t *panel_p(const attention_u8s8 *a, const areas *s, const block *b, int64_t panel) {
  return s->p + (a->D > 64 ? panel : (b->t / BLOCK * s->panels + panel) & 1) * PANEL_P;
}

/* Adds the probabilities of a panel times 16 columns of the values to the sums in register j; stores these after the last panel. d:
 * the first of 64 columns. */
#define CONTEXT_TILE(j)                                                                            \
  do {                                                                                             \
    if (panel == 0)                                                                                \
      tile_zero(j);                                                                                \
    tile_load(B, s->values + (d / 64 * packed_groups(a->S) + panel * 16) * GROUP + j * 64, GROUP); \
    tile_dpbusd(j, P, B);                                                                          \
    if (panel == s->panels - 1)                                                                    \
      tile_store(j, s->context + d + j * 16, s->D_row * 4);                                        \
  } while (0)

INLINE void context_tile(const attention_u8s8 *a, const areas *s, const block *b, int64_t panel, int64_t d, int j) {
  if (j == 0 || a->D > 64)
    tile_load(P, panel_p(a, s, b, panel), 64);
  if (d + j * 16 >= a->D)
    return;
  switch (j) {
  case 0: CONTEXT_TILE(0); break;
  case 1: CONTEXT_TILE(1); break;
  case 2: CONTEXT_TILE(2); break;
  default: CONTEXT_TILE(3); break;
  }
}

/* The products of a block that were not computed between rows of probabilities: the last panel's, and all columns past the 64th. */
static void last_products(const attention_u8s8 *a, const areas *s, const block *b) {
  tile_barrier();
  for (int64_t d = 0; d < a->D; d += 64)
    for (int64_t panel = d ? 0 : s->panels - 1; panel < s->panels; panel++)
      for (int j = 0; j < 4; j++)
        context_tile(a, s, b, panel, d, j);
  tile_barrier();
}

/* ---- Probabilities ------------------------------------------------------------------------------------------------ */

/* The largest scores of row i, by lanes. */
INLINE v16i top_of_row(const areas *s, const block *b, int64_t S, int i) {
  v16i least = visplat(INT32_MIN), x = least, y = least;
  for (int64_t panel = 0; panel < s->panels; panel++) {
    const int32_t *at = panel_scores(s, b, panel) + i * 16;
    int64_t left = S - panel * 64;
    if (left >= 64) {
      x = vimax(x, vimax(viload(at, 16), viload(at + TILE, 16)));
      y = vimax(y, vimax(viload(at + 2 * TILE, 16), viload(at + 3 * TILE, 16)));
    } else {
      for (; left > 0; left -= 16, at += TILE)
        x = vimax(x, vifirst(viload(at, 16), least, (int)at_most(left, 16)));
    }
  }
  return vimax(x, y);
}

/* float(s - top) c + bias log2 e, floats in place of row i's scores, and the largest of them. It is finite: its key's score is at
 * least that of the top one plus the difference of two biases. bias: of the first key. */
static void add_bias(const areas *s, block *b, int64_t i, const float *bias, float scale, int64_t S) {
  v16 least = vsplat(-INFINITY), largest = least, c = vsplat(scale), log2e = vsplat(0x1.715476p0f);
  v16i top = visplat(b->most[i].top);
  LANES(S, int32_t *at = panel_scores(s, b, k / 64) + k % 64 / 16 * TILE + i * 16;
        v16 v = vfma(vfloat(visub(viload(at, 16), top)), c, vmul(vload(bias + k, n), log2e)); vstore((float *)(void *)at, v, 16);
        largest = vmax(vfirst(v, least, n), largest));
  b->most[i].biased_top = vgreatest(largest);
}

/* The probabilities of row i in a panel; x: its first 16 scores. biased: a constant in each copy. */
INLINE void row_of_p(uint8_t *p, const int32_t *x, block *b, int i, v16 c, int64_t left, const int biased) {
  row_most most = b->most[i];
  v16 d[] = {difference16(x, most, biased), difference16(x + TILE, most, biased), difference16(x + 2 * TILE, most, biased),
             difference16(x + 3 * TILE, most, biased)};
  v16i sum = left >= 64 ? four_probabilities(p, d, c)
                        : store_p(p, some(x, most, c, biased, left), some(x + TILE, most, c, biased, left - 16),
                                  some(x + 2 * TILE, most, c, biased, left - 32), some(x + 3 * TILE, most, c, biased, left - 48));
  vistore(b->sums[i], viadd(viload(b->sums[i], 16), sum));
}

/* ---- Blocks ------------------------------------------------------------------------------------------------------- */

static void store_block(const attention_u8s8 *a, const areas *s, const block *b) {
  int32_t sum[BLOCK];
  reduce16(sum, &b->sums[0][0], REDUCE_SUM);
  for (int64_t i = 0; i < b->rows; i++)
    store_context(a, s->context + i * s->D_row, a->v_scale / (float)sum[i], b->t + i, 0, a->D);
}

/* Probabilities of block b; in between the scores of the next block, unless it has no rows, and the results of the panels before.
 * The results of the last panel are still to come. */
INLINE void attend_block(const attention_u8s8 *a, const areas *s, block *b, const block *before, const block *next,
                         const int biased) {
  v16 c = vsplat(biased ? 1 : a->scale * 0x1.715476p0f); /* log2 e; add_bias has multiplied already */
  int32_t *scores = NULL;
  for (int64_t panel = 0; panel < s->panels; panel++) {
    const int32_t *x = panel_scores(s, b, panel);
    uint8_t *p = panel_p(a, s, b, panel);
    int64_t done = panel > 0 ? panel - 1 : before->rows ? s->panels - 1 : -1;
    for (int i = 0; i < 8; i++) {
      row_of_p(p + 2 * i * 64, x + 2 * i * 16, b, 2 * i, c, a->S - panel * 64, biased);
      row_of_p(p + (2 * i + 1) * 64, x + (2 * i + 1) * 16, b, 2 * i + 1, c, a->S - panel * 64, biased);
      tile_barrier();
      if (i % 2) {
        store_scores(scores);
        scores = next->rows ? begin_scores(a, s, next, panel, i / 2) : NULL;
      } else if (done >= 0) {
        context_tile(a, s, panel > 0 ? b : before, done, 0, i / 2);
      }
      tile_barrier();
    }
    if (panel == 0 && before->rows)
      store_block(a, s, before);
  }
  store_scores(scores);
  tile_barrier();
}

/* Begins a block whose scores are there: the largest score of each row. */
static void begin(const attention_u8s8 *a, const areas *s, block *b) {
  _Alignas(64) int32_t lanes[BLOCK][16];
  int32_t top[BLOCK];
  for (int i = 0; i < BLOCK; i++) {
    vistore(lanes[i], top_of_row(s, b, a->S, i));
    vistore(b->sums[i], visplat(0));
  }
  reduce16(top, &lanes[0][0], REDUCE_MAX);
  for (int i = 0; i < BLOCK; i++)
    b->most[i].top = top[i];
  for (int64_t i = 0; a->bias && i < b->rows; i++)
    add_bias(s, b, i, a->bias - (b->t + i), a->scale * 0x1.715476p0f, a->S);
}

/* Queries q0 to q1 of one head. */
static void attend(const attention_u8s8 *a, int64_t q0, int64_t q1, void *scratch) {
  areas s = areas_of(a, scratch);
  block blocks[3] = {{.t = q0 - BLOCK}}, *before = &blocks[2], *now = &blocks[0], *next = &blocks[1];
  pack_keys(s.keys, a);
  pack_values(s.values, a);
  tile_config(&whole_tiles);
  next_block(a, &s, now, next, q1);
  for (int64_t k = 0; k < a->S; k += 16)
    store_scores(begin_scores(a, &s, next, k / 64, (int)(k % 64 / 16)));
  tile_barrier();
  while (next->rows) {
    block *free = before;
    before = now, now = next, next = free;
    begin(a, &s, now);
    if (now->t + BLOCK < q1)
      next_block(a, &s, now, next, q1);
    else
      next->rows = 0;
    if (a->bias)
      attend_block(a, &s, now, before, next, 1);
    else
      attend_block(a, &s, now, before, next, 0);
    if (a->D > 64 || !next->rows) {
      last_products(a, &s, now);
      store_block(a, &s, now);
      now->rows = 0; /* its results are stored */
    }
  }
  tile_release();
}
