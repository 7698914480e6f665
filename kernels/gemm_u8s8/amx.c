/* amx.c: the AMX kernel on the CPU's tile instructions. Who calls it has asked the system for the tile state. */
#include <immintrin.h>

#include "layout.h"

/* gcc 12's intrinsic tells the compiler of 8 of the 64 bytes that it reads; the empty assembly keeps the others. */
#define tile_config(t)                          \
  (__extension__({                              \
    __asm__ volatile("" : : "r"(t) : "memory"); \
    _tile_loadconfig(t);                        \
  }))
#define tile_zero(t) _tile_zero(t)
#define tile_load(t, base, stride) _tile_loadd(t, base, stride)
#define tile_dpbusd(c, a, b) _tile_dpbusd(c, a, b)
#define tile_store(t, base, stride) _tile_stored(t, base, stride)
#define tile_release() _tile_release()

#define GEMM gemm_u8s8_amx
#include "amx_body.h"
