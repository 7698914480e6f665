/* table.c: the kernels of each ISA, one row each, every cell spelled out. One without a float kernel of its own borrows it. */
#include "kernels.h"

#include "engine/perigee.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/scratch.h"
#include "kernels/attention_u8s8/attention_u8s8.h"
#include "kernels/attention_u8s8/scratch.h"
#include "kernels/gemm_f32/gemm_f32.h"
#include "kernels/gemm_u8s8/layout.h"
#include "kernels/rows/rows.h"

static const kernels table[PGEE_ISAS] = {
    [PGEE_REF] =
        {
            .isa = PGEE_REF,
            .tile_m = GEMM_U8S8_REF_M,
            .tile_max = GEMM_U8S8_REF_M,
            .tile_grain = 1,
            .gemm_u8s8 = gemm_u8s8_ref,
            .tile_m_f32 = TILE_M_F32,
            .gemm_f32 = gemm_f32_ref,
            .epilogue_s32 = epilogue_s32_ref,
            .epilogue_f32 = epilogue_f32_ref,
            .norm = norm_ref,
            .quantize = quantize_ref,
            .range = range_ref,
            .attention_f32 = attention_f32_ref,
            .attention_u8s8 = attention_u8s8_ref,
            .embed = embed_ref,
            .pool = pool_ref,
            .unit = unit_ref,
            .minmax = minmax_ref,
        },
#ifdef __x86_64__
    [PGEE_AVX2] =
        {
            .isa = PGEE_AVX2,
            .tile_m = GEMM_U8S8_AVX2_M,
            .tile_max = GEMM_U8S8_AVX2_M,
            .tile_grain = 1,
            .gemm_u8s8 = gemm_u8s8_avx2,
            .tile_m_f32 = TILE_M_F32,
            .gemm_f32 = gemm_f32_avx2,
            .epilogue_s32 = epilogue_s32_avx2,
            .epilogue_f32 = epilogue_f32_avx2,
            .norm = norm_avx2,
            .quantize = quantize_avx2,
            .range = range_avx2,
            .attention_f32 = attention_f32_avx2,
            .attention_u8s8 = attention_u8s8_avx2,
            .embed = embed_avx2,
            .pool = pool_avx2,
            .unit = unit_avx2,
            .minmax = minmax_avx2,
        },
    [PGEE_AVXVNNI] =
        {
            .isa = PGEE_AVXVNNI,
            .tile_m = GEMM_U8S8_AVXVNNI_M,
            .tile_max = GEMM_U8S8_AVXVNNI_M,
            .tile_grain = 1,
            .gemm_u8s8 = gemm_u8s8_avxvnni,
            .tile_m_f32 = TILE_M_F32,
            .gemm_f32 = gemm_f32_avx2,
            .epilogue_s32 = epilogue_s32_avx2,
            .epilogue_f32 = epilogue_f32_avx2,
            .norm = norm_avx2,
            .quantize = quantize_avx2,
            .range = range_avx2,
            .attention_f32 = attention_f32_avx2,
            .attention_u8s8 = attention_u8s8_avxvnni,
            .embed = embed_avx2,
            .pool = pool_avx2,
            .unit = unit_avx2,
            .minmax = minmax_avx2,
        },
    [PGEE_AVX512VNNI] =
        {
            .isa = PGEE_AVX512VNNI,
            .tile_m = GEMM_U8S8_AVX512VNNI_M,
            .tile_max = GEMM_U8S8_AVX512VNNI_M + 1,
            .tile_grain = 1,
            .gemm_u8s8 = gemm_u8s8_avx512vnni,
            .prepare_panel = prepare_panel_avx512vnni,
            .gemm_u8s8_overlapped = gemm_u8s8_overlapped_avx512vnni,
            .tile_m_f32 = TILE_M_F32,
            .gemm_f32 = gemm_f32_avx512vnni,
            .epilogue_s32 = epilogue_s32_avx512vnni,
            .epilogue_f32 = epilogue_f32_avx512vnni,
            .norm = norm_avx512vnni,
            .quantize = quantize_avx512vnni,
            .range = range_avx512vnni,
            .attention_f32 = attention_f32_avx512vnni,
            .attention_u8s8 = attention_u8s8_avx512vnni,
            .embed = embed_avx512vnni,
            .pool = pool_avx512vnni,
            .unit = unit_avx512vnni,
            .minmax = minmax_avx512vnni,
        },
    [PGEE_AMX] =
        {
            .isa = PGEE_AMX,
            .tile_m = GEMM_U8S8_AMX_M,
            .tile_max = GEMM_U8S8_AMX_M,
            .tile_grain = 16,
            .group_bytes = GROUP_BYTES_AMX,
            .configure_tiles = configure_tiles_amx,
            .release_tiles = release_tiles_amx,
            .gemm_u8s8 = gemm_u8s8_amx,
            .prepare_panel = prepare_panel_amx,
            .gemm_u8s8_overlapped = gemm_u8s8_overlapped_amx,
            .flush_tiles = flush_tiles_amx,
            .tile_m_f32 = TILE_M_F32,
            .gemm_f32 = gemm_f32_avx512vnni,
            .epilogue_s32 = epilogue_s32_avx512vnni,
            .epilogue_f32 = epilogue_f32_avx512vnni,
            .norm = norm_avx512vnni,
            .quantize = quantize_avx512vnni,
            .range = range_avx512vnni,
            .attention_f32 = attention_f32_avx512vnni,
            .attention_u8s8 = attention_u8s8_amx,
            .embed = embed_avx512vnni,
            .pool = pool_avx512vnni,
            .unit = unit_avx512vnni,
            .minmax = minmax_avx512vnni,
        },
#endif
    /* The model runs on any CPU, and so do the reference's kernels. */
    [PGEE_AMX_MODEL] =
        {
            .isa = PGEE_AMX_MODEL,
            .tile_m = GEMM_U8S8_AMX_M,
            .tile_max = GEMM_U8S8_AMX_M,
            .tile_grain = 16,
            .group_bytes = GROUP_BYTES_AMX,
            .configure_tiles = configure_tiles_amx_model,
            .release_tiles = release_tiles_amx_model,
            .gemm_u8s8 = gemm_u8s8_amx_model,
            .prepare_panel = prepare_panel_amx_model,
            .gemm_u8s8_overlapped = gemm_u8s8_overlapped_amx_model,
            .flush_tiles = flush_tiles_amx_model,
            .tile_m_f32 = TILE_M_F32,
            .gemm_f32 = gemm_f32_ref,
            .epilogue_s32 = epilogue_s32_ref,
            .epilogue_f32 = epilogue_f32_ref,
            .norm = norm_ref,
            .quantize = quantize_ref,
            .range = range_ref,
            .attention_f32 = attention_f32_ref,
            .attention_u8s8 = attention_u8s8_amx_model,
            .embed = embed_ref,
            .pool = pool_ref,
            .unit = unit_ref,
            .minmax = minmax_ref,
        },
};

const kernels *kernels_for(int isa) { return isa >= 0 && isa < PGEE_ISAS ? &table[isa] : 0; }

int64_t attention_scratch(int64_t S, int64_t D) { return scratch_floats(S, D); }

int64_t attention_u8s8_scratch(int64_t S, int64_t D) { return scratch_bytes(S, D); }
