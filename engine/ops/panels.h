/* panels.h: a linear's rows times some panels of its weight, epilogues included: what linear.c gives its threads to do. */
#ifndef PERIGEE_PANELS_H
#define PERIGEE_PANELS_H
#include "operator.h"

enum { MAX_GROUP = 8 }; /* panels that are taken together */

/* Accumulators of two tiles: one is multiplied while the other's epilogue runs. The core compares only the lowest 12 bits of the
 * addresses of loads and earlier stores. Therefore the tiles of 6 rows, which have just been stored, lie at other places of a page
 * than the vectors of the first panels. */
typedef struct tiles {
  _Alignas(4096) int32_t c[2][MAX_TILE_M * PANEL];
  char apart[MAX_TILE_M * 56];
  panel_constants panel[MAX_GROUP][2]; /* of this group, and of the one before, whose last tile may be pending */
  int at, panel_at;
  int configured; /* rows that the tile registers are configured for; 0: none */
  pending_tile pending;
} tiles;

/* Panels of one weight, and what comes into the cache while they are multiplied. */
typedef struct group {
  int64_t panel, count;
  weight_span next;
} group;

/* The epilogue of a linear: how its sums become results. */
epilogue linear_epilogue(const pgee_linear_args *a);

/* Around a thread's groups. tiles_end runs the last epilogue; no tile registers stay configured. */
void tiles_begin(tiles *s);
void tiles_end(tiles *s, const kernels *k);
/* Fetches what the epilogues of a panel read. */
void fetch_vectors(const pgee_linear_args *a, int64_t panel);
/* Rows first to last of a group. The last tile's epilogue stays pending, if the weight is INT8. */
void run_group(const pgee_linear_args *a, const context *c, const epilogue *e, group g, int64_t first, int64_t last, tiles *s);

#endif
