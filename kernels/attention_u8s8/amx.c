/* INT8 attention for amx: tiles of 16 by 64; the rest is avx512vnni's. */
#define NAME(f) f##_amx
#include "../gemm_u8s8/amx_tiles.h"
#include "../rows/v16_avx512.h"

#include "../rows/functions.h"
#include "scratch.h"
#include "tile_amx.h"

#include "lanes_avx512.h"

#include "body.h"
