/* amx_tiles.h: the tile instructions that AMX kernels are written in, tile_config, tile_zero, tile_load, tile_load_once,
 * tile_dpbusd, tile_dpbssd, tile_dpbf16ps, tile_store and tile_release: the CPU's, or with AMX_MODEL a portable model of them. Registers are given
 * as literals, 0 to 7. tile_load_once is for bytes that need not stay in the first-level cache. */
#ifndef PERIGEE_GEMM_U8S8_AMX_TILES_H
#define PERIGEE_GEMM_U8S8_AMX_TILES_H
#include <stdint.h>

#ifdef AMX_MODEL
#include "amx_model.h"
#define tile_config model_config
#define tile_zero model_zero
#define tile_load model_load
#define tile_load_once model_load
#define tile_dpbusd model_dpbusd
#define tile_dpbssd model_dpbssd
#define tile_dpbf16ps model_dpbf16ps
#define tile_store model_store
#define tile_release model_release
#define tile_barrier() (void)0
#else
#include <immintrin.h>
/* gcc's intrinsics for ldtilecfg and tileloadd do not tell the compiler which memory they read. So the compiler could move a
 * store behind such a load, and could drop a store that only the load needs. Put a barrier between the two. tile_config has
 * one. */
#define tile_barrier() __asm__ volatile("" : : : "memory")
#define tile_config(t)   \
  (__extension__({       \
    tile_barrier();      \
    _tile_loadconfig(t); \
  }))
#define tile_zero(t) _tile_zero(t)
#define tile_load(t, base, stride) _tile_loadd(t, base, stride)
#define tile_load_once(t, base, stride) _tile_stream_loadd(t, base, stride)
#define tile_dpbusd(c, a, b) _tile_dpbusd(c, a, b)
#define tile_dpbssd(c, a, b) _tile_dpbssd(c, a, b)
#define tile_dpbf16ps(c, a, b) _tile_dpbf16ps(c, a, b)
#define tile_store(t, base, stride) _tile_stored(t, base, stride)
#define tile_release() _tile_release()
#endif

enum { TILE_ROWS = 16, TILE_BYTES = 64 };

/* What ldtilecfg reads. A register with rows and no bytes, or bytes and no rows, is an error. */
typedef struct tile_configuration {
  uint8_t palette, start_row, reserved[14];
  uint16_t bytes[8], reserved_bytes[8];
  uint8_t rows[8], reserved_rows[8];
} tile_configuration;

#endif
