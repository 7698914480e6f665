/* isa.h: the list of instruction sets (ISAs). Everything else that depends on this list reads it from here: the checks of the CPU
 * (engine/cpu/cpu.c), the table of kernels (table.c), the specs, the benches, and the Makefile, which takes the compiler flags out
 * of the lines ISA(...) with sed. Keep each ISA on one line for that.
 *
 * Columns of a line:
 *   number     PGEE_number is its number in engine/perigee.h, which is above that of its base. Among the automatic ISAs a higher
 *              number is a faster ISA
 *   suffix     part of the names of its files and functions: kernels/gemm_u8s8/avx2.c defines gemm_u8s8_avx2
 *   name       what pgee_isa_name returns and PERIGEE_ISA takes
 *   base       the ISA whose requirements it has, too. REF has none
 *   registers  the register state that the operating system must save: NONE, YMM, ZMM or TILES
 *   automatic  1 if the library may choose it by itself, 0 if it runs only when PERIGEE_ISA names it
 *   flags      compiler flags for files named suffix.c. Every other file gets plain x86-64
 */
#ifndef PERIGEE_KERNELS_ISA_H
#define PERIGEE_KERNELS_ISA_H
/* clang-format off */

#define PORTABLE_ISAS(ISA)                                             \
  ISA(REF,        ref,        "ref",        REF,        NONE,  1, "") \
  ISA(AMX_MODEL,  amx_model,  "amx-model",  REF,        NONE,  0, "")

#define X86_ISAS(ISA)                                                                       \
  ISA(AVX2,       avx2,       "avx2",       REF,        YMM,   1, "-mavx2 -mfma -mf16c")   \
  ISA(AVXVNNI,    avxvnni,    "avxvnni",    AVX2,       YMM,   1, "-mavx2 -mfma -mf16c -mavxvnni") \
  ISA(AVX512VNNI, avx512vnni, "avx512vnni", AVX2,       ZMM,   1, "-mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni") \
  ISA(AMX,        amx,        "amx",        AVX512VNNI, TILES, 1, "-mavx2 -mfma -mf16c -mavx512f -mavx512bw -mavx512vl -mavx512dq -mavx512vnni -mamx-tile -mamx-int8 -mamx-bf16")

/* The CPUID bits that an ISA needs in addition to those of its base: leaf, sub-leaf, register, bit, and the feature's name. */
#define X86_FEATURES(FEATURE)                             \
  FEATURE(AVX2,       1, 0, ecx, 28, "AVX")               \
  FEATURE(AVX2,       1, 0, ecx, 12, "FMA")               \
  FEATURE(AVX2,       1, 0, ecx, 29, "F16C")              \
  FEATURE(AVX2,       7, 0, ebx,  5, "AVX2")              \
  FEATURE(AVXVNNI,    7, 1, eax,  4, "AVX-VNNI")          \
  FEATURE(AVX512VNNI, 7, 0, ebx, 16, "AVX512F")           \
  FEATURE(AVX512VNNI, 7, 0, ebx, 30, "AVX512BW")          \
  FEATURE(AVX512VNNI, 7, 0, ebx, 31, "AVX512VL")          \
  FEATURE(AVX512VNNI, 7, 0, ebx, 17, "AVX512DQ")          \
  FEATURE(AVX512VNNI, 7, 0, ecx, 11, "AVX512-VNNI")       \
  FEATURE(AMX,        7, 0, edx, 22, "AMX-BF16")          \
  FEATURE(AMX,        7, 0, edx, 24, "AMX-TILE")          \
  FEATURE(AMX,        7, 0, edx, 25, "AMX-INT8")

/* clang-format on */
#define ALL_ISAS(ISA) PORTABLE_ISAS(ISA) X86_ISAS(ISA)

/* The ISAs that this build has kernels for. */
#ifdef __x86_64__
#define BUILT_ISAS(ISA) ALL_ISAS(ISA)
#else
#define BUILT_ISAS(ISA) PORTABLE_ISAS(ISA)
#endif

#endif
