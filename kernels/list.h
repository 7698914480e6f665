/* list.h: the list of kernels. For each instruction set (ISA) of isa.h it says which kernel runs each operator of kernels.h.
 *
 * KERNEL(gemm_u8s8, avx2) stands for the function gemm_u8s8_avx2. This list yields the prototypes (below), the rows of the table
 * (table.c), the cases of the specs (spec/support/kernels.lua) and those of the bench (spec/bench/kernels.lua). An ISA may
 * use kernels of another ISA that it includes. An operator that is not in an ISA's list is NULL in the table.
 */
#ifndef PERIGEE_KERNELS_LIST_H
#define PERIGEE_KERNELS_LIST_H
#include "isa.h"
#include "kernels.h"

/* clang-format off */
/* The kernels of rows/ISA.c. */
#define ROW_KERNELS(KERNEL, isa) \
  KERNEL(epilogue_s32, isa) KERNEL(epilogue_f32, isa) KERNEL(norm, isa) KERNEL(quantize, isa) KERNEL(range, isa) \
  KERNEL(embed, isa) KERNEL(pool, isa) KERNEL(unit, isa) KERNEL(minmax, isa)

/* Software pipelining, and the tile registers of AMX. */
#define PIPELINE_KERNELS(KERNEL, isa) KERNEL(prepare_panel, isa) KERNEL(gemm_u8s8_overlapped, isa)
#define TILE_KERNELS(KERNEL, isa) KERNEL(configure_tiles, isa) KERNEL(release_tiles, isa) KERNEL(flush_tiles, isa)

#define KERNELS_OF_ref(KERNEL) \
  KERNEL(gemm_u8s8, ref) KERNEL(gemm_f32, ref) \
  KERNEL(gemm_bf16, ref) KERNEL(round_bf16, ref) \
  KERNEL(attention_u8s8, ref) KERNEL(attention_f32, ref) \
  ROW_KERNELS(KERNEL, ref)

#define KERNELS_OF_amx_model(KERNEL) \
  KERNEL(gemm_u8s8, amx_model) KERNEL(gemm_f32, ref) \
  KERNEL(gemm_bf16, amx_model) KERNEL(round_bf16, ref) \
  PIPELINE_KERNELS(KERNEL, amx_model) TILE_KERNELS(KERNEL, amx_model) \
  KERNEL(attention_u8s8, amx_model) KERNEL(attention_f32, ref) \
  ROW_KERNELS(KERNEL, ref)

#define KERNELS_OF_avx2(KERNEL) \
  KERNEL(gemm_u8s8, avx2) KERNEL(gemm_f32, avx2) \
  KERNEL(gemm_bf16, avx2) KERNEL(round_bf16, avx2) \
  KERNEL(attention_u8s8, avx2) KERNEL(attention_f32, avx2) \
  ROW_KERNELS(KERNEL, avx2)

#define KERNELS_OF_avxvnni(KERNEL) \
  KERNEL(gemm_u8s8, avxvnni) KERNEL(gemm_f32, avx2) \
  KERNEL(gemm_bf16, avx2) KERNEL(round_bf16, avx2) \
  KERNEL(attention_u8s8, avxvnni) KERNEL(attention_f32, avx2) \
  ROW_KERNELS(KERNEL, avx2)

#define KERNELS_OF_avx512vnni(KERNEL) \
  KERNEL(gemm_u8s8, avx512vnni) KERNEL(gemm_f32, avx512vnni) \
  KERNEL(gemm_bf16, avx512vnni) KERNEL(round_bf16, avx512vnni) \
  PIPELINE_KERNELS(KERNEL, avx512vnni) \
  KERNEL(attention_u8s8, avx512vnni) KERNEL(attention_f32, avx512vnni) \
  ROW_KERNELS(KERNEL, avx512vnni)

#define KERNELS_OF_amx(KERNEL) \
  KERNEL(gemm_u8s8, amx) KERNEL(gemm_f32, avx512vnni) \
  KERNEL(gemm_bf16, amx) KERNEL(round_bf16, avx512vnni) \
  PIPELINE_KERNELS(KERNEL, amx) TILE_KERNELS(KERNEL, amx) \
  KERNEL(attention_u8s8, amx) KERNEL(attention_f32, avx512vnni) \
  ROW_KERNELS(KERNEL, avx512vnni)
/* clang-format on */

/* tile_m, tile_max, tile_grain and group_bytes of kernels.h. The group of AMX takes a quarter of the second-level cache of the CPUs
 * that have AMX; rows and prefetched weights need the rest. */
#define TILES_OF_ref 4, 4, 1, 0
#define TILES_OF_amx_model TILES_OF_amx
#define TILES_OF_avx2 6, 6, 1, 0
#define TILES_OF_avxvnni 6, 6, 1, 0
#define TILES_OF_avx512vnni 6, 7, 1, 0
#define TILES_OF_amx 32, 32, 16, 512 << 10

enum { TILE_M_F32 = 6 }; /* tile_m_f32 of every ISA */

/* The prototypes: each kernel has the type of its operator's member in struct kernels. */
#define PROTOTYPE(op, isa) __typeof__(*((kernels *)0)->op) op##_##isa;
#define PROTOTYPES(number, suffix, ...) KERNELS_OF_##suffix(PROTOTYPE)
BUILT_ISAS(PROTOTYPES)
#undef PROTOTYPES
#undef PROTOTYPE

#endif
