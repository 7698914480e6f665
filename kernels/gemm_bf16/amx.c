/* amx.c: gemm_bf16 on the CPU's tile instructions. The caller has asked the system for the tile state. */
#define NAME(f) f##_amx
#include "amx_body.h"
