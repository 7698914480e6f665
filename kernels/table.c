/* table.c: the table of kernels, made of the lists in isa.h and list.h. */
#include "list.h"

#include <stddef.h>

#include "engine/perigee.h"
#include "kernels/attention/scratch.h"
#include "kernels/attention_u8s8/scratch.h"

#define CELL(op, isa) .op = op##_##isa,
#define TILES(m, max, grain, bytes) .tile_m = m, .tile_max = max, .tile_grain = grain, .group_bytes = bytes
#define EXPAND(macro, ...) macro(__VA_ARGS__)
#define ROW(number, suffix, ...) \
  [PGEE_##number] = {.isa = PGEE_##number, EXPAND(TILES, TILES_OF_##suffix), .tile_m_f32 = TILE_M_F32, KERNELS_OF_##suffix(CELL)},

static const kernels table[PGEE_ISAS] = {BUILT_ISAS(ROW)};

/* ISAs that this build has no kernels for have a row of zeros. */
const kernels *kernels_for(int isa) { return isa >= 0 && isa < PGEE_ISAS && table[isa].gemm_u8s8 ? &table[isa] : NULL; }

int64_t attention_scratch(int64_t S, int64_t D) { return scratch_floats(S, D); }

int64_t attention_u8s8_scratch(int64_t S, int64_t D) { return scratch_bytes(S, D); }
