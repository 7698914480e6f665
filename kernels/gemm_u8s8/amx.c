/* amx.c: the AMX kernel on the CPU's tile instructions. Who calls it has asked the system for the tile state. */
#include "layout.h"

#define GEMM gemm_u8s8_amx
#define CONFIGURE configure_amx
#define RELEASE release_amx
#include "amx_body.h"
