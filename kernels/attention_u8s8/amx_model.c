/* INT8 attention for amx-model: the tiles of amx on the model of their instructions; the rest is the reference's. */
#define NAME(f) f##_amx_model
#define AMX_MODEL
#include "../gemm_u8s8/amx_tiles.h"
#include "../rows/v16_ref.h"

#include "../rows/functions.h"
#include "scratch.h"
#include "tile_amx.h"

#include "lanes_ref.h"

#include "body.h"
