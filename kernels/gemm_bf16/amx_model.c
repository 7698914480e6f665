/* amx_model.c: gemm_bf16 on the portable model of the tile instructions (gemm_u8s8/amx_model.c). */
#define AMX_MODEL
#define NAME(f) f##_amx_model
#include "amx_body.h"
