/* amx.c: the AMX kernel on the CPU's tile instructions. The caller has asked the system for the tile state. */
#define NAME(f) f##_amx
#define EPILOGUE epilogue_s32_avx512vnni
#include "kernels/rows/v16_avx512.h"

#include "kernels/rows/functions.h"

#include "amx_body.h"
