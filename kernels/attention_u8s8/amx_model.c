/* INT8 attention for amx-model: the tiles of amx on the model of their instructions, the rest as in the reference. */
#define AMX_MODEL
#include "kernels/gemm_u8s8/amx_tiles.h"
#include "kernels/rows/v16_ref.h"

#include "kernels/rows/functions.h"
#include "scratch.h"

#include "lanes_ref.h"

#include "head.h"

#include "tiles_amx.h"

void attention_u8s8_amx_model(const attention_u8s8 *a, int64_t q0, int64_t q1, void *scratch) { attend(a, q0, q1, scratch); }
