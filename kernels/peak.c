/* peak.c: loops that only multiply or only read, for benches.
 *
 * The loops are assembly, so that no compiler removes or spills anything. Each round has twelve accumulators. These are enough to hide
 * the latency, and with two operands they fit the sixteen registers that every ISA has.
 */
#include "peak.h"

#include "engine/perigee.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <emmintrin.h>

enum { ROUNDS = 20000, REGISTERS = 12 };

/* Sets every lane of registers 14 and 15 to `one` and the accumulators to 0. `each`: the instructions for one accumulator, whose number is
 * \\r. */
#define LOOP(reg, one, each)                                                                                               \
  __asm__ volatile("vzeroall\n"                                                                                            \
                   "vbroadcastss %0, %%" reg "14\n"                                                                        \
                   "vbroadcastss %0, %%" reg "15\n"                                                                        \
                   "mov $20000, %%ecx\n"                                                                                   \
                   ".p2align 6\n"                                                                                          \
                   "1:\n"                                                                                                  \
                   ".irp r,0,1,2,3,4,5,6,7,8,9,10,11\n" each "\n.endr\n"                                                   \
                   "dec %%ecx\n"                                                                                           \
                   "jnz 1b\n"                                                                                              \
                   "vzeroupper\n"                                                                                          \
                   :                                                                                                       \
                   : "m"(one)                                                                                              \
                   : "ecx", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
                     "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

/* Sixteen rows of 64 bytes in each of eight tiles: four accumulators, two A, two B. A thousand rounds of four products by the instruction
 * `product`. */
#define AMX_LOOP(product)                                                                                 \
  __asm__ volatile("ldtilecfg %0\n"                                                                       \
                   ".irp t,0,1,2,3,4,5,6,7\n"                                                             \
                   "tilezero %%tmm\\t\n"                                                                  \
                   ".endr\n"                                                                              \
                   "mov $1000, %%ecx\n"                                                                   \
                   ".p2align 6\n"                                                                         \
                   "1:\n" product " %%tmm6, %%tmm4, %%tmm0\n" product " %%tmm7, %%tmm4, %%tmm1\n" product \
                   " %%tmm6, %%tmm5, %%tmm2\n" product " %%tmm7, %%tmm5, %%tmm3\n"                        \
                   "dec %%ecx\n"                                                                          \
                   "jnz 1b\n"                                                                             \
                   "tilerelease\n"                                                                        \
                   :                                                                                      \
                   : "m"(tiles)                                                                           \
                   : "ecx", "cc")

/* Products of pairs of BF16 if `bf16`, else of quadruples of bytes. */
static int64_t amx(int bf16) {
  static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
  } tiles = {1, 0, {0}, {64, 64, 64, 64, 64, 64, 64, 64}, {16, 16, 16, 16, 16, 16, 16, 16}};
  if (bf16)
    AMX_LOOP("tdpbf16ps");
  else
    AMX_LOOP("tdpbusd");
  return 1000 * 4 * 16 * 16 * (bf16 ? 32 : 64);
}

int64_t peak_u8s8(int isa) {
  static const int32_t one = 0x01010101;
  switch (isa) {
  case PGEE_AVX2: /* 16 exact products take these two instructions */
    LOOP("ymm", one, "vpmaddwd %%ymm14, %%ymm15, %%ymm13\nvpaddd %%ymm13, %%ymm\\r, %%ymm\\r");
    return (int64_t)ROUNDS * REGISTERS * 16;
  case PGEE_AVXVNNI: LOOP("ymm", one, "%{vex%} vpdpbusd %%ymm14, %%ymm15, %%ymm\\r"); return (int64_t)ROUNDS * REGISTERS * 32;
  case PGEE_AVX512VNNI: LOOP("zmm", one, "vpdpbusd %%zmm14, %%zmm15, %%zmm\\r"); return (int64_t)ROUNDS * REGISTERS * 64;
  case PGEE_AMX: return amx(0);
  default: return 0;
  }
}

int64_t peak_f32(int isa) {
  static const float one = 1;
  switch (isa) {
  case PGEE_AVX2:
  case PGEE_AVXVNNI: LOOP("ymm", one, "vfmadd231ps %%ymm14, %%ymm15, %%ymm\\r"); return (int64_t)ROUNDS * REGISTERS * 8;
  case PGEE_AVX512VNNI:
  case PGEE_AMX: LOOP("zmm", one, "vfmadd231ps %%zmm14, %%zmm15, %%zmm\\r"); return (int64_t)ROUNDS * REGISTERS * 16;
  default: return 0;
  }
}

static int has_avx512_bf16(void) {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) && a >> 5 & 1;
}

int64_t peak_bf16(int isa) {
  static const int32_t one = 0x3f803f80; /* two BF16 */
  if (isa == PGEE_AMX)
    return amx(1);
  if (isa != PGEE_AVX512VNNI || !has_avx512_bf16())
    return 0;
  LOOP("zmm", one, "vdpbf16ps %%zmm14, %%zmm15, %%zmm\\r");
  return (int64_t)ROUNDS * REGISTERS * 32;
}

/* `reg`, the registers; `step`: their bytes. Eight loads a round, whose sums are not used. */
#define READ(reg, step)                                                    \
  __asm__ volatile(".p2align 6\n"                                          \
                   "1:\n"                                                  \
                   ".irp r,0,1,2,3,4,5,6,7\n"                              \
                   "vpaddd \\r*" step "(%0), %%" reg "\\r, %%" reg "\\r\n" \
                   ".endr\n"                                               \
                   "add $8*" step ", %0\n"                                 \
                   "cmp %1, %0\n"                                          \
                   "jb 1b\n"                                               \
                   "vzeroupper\n"                                          \
                   : "+r"(p)                                               \
                   : "r"(end)                                              \
                   : "cc", "memory", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7")

void peak_read_wide(int isa, const void *from, int64_t bytes) {
  const char *p = from, *end = p + bytes;
  if (isa == PGEE_AVX512VNNI || isa == PGEE_AMX) {
    READ("zmm", "64");
  } else if (isa == PGEE_AVX2 || isa == PGEE_AVXVNNI) {
    READ("ymm", "32");
  } else {
    volatile uint64_t sum = peak_read(from, bytes);
    (void)sum;
  }
}

uint64_t peak_read(const void *from, int64_t bytes) {
  const __m128i *p = from;
  __m128i a = _mm_setzero_si128(), b = a, c = a, d = a;
  for (int64_t i = 0; i < bytes / 16; i += 4) {
    a = _mm_add_epi64(a, p[i]);
    b = _mm_add_epi64(b, p[i + 1]);
    c = _mm_add_epi64(c, p[i + 2]);
    d = _mm_add_epi64(d, p[i + 3]);
  }
  a = _mm_add_epi64(_mm_add_epi64(a, b), _mm_add_epi64(c, d));
  return (uint64_t)_mm_cvtsi128_si64(_mm_add_epi64(a, _mm_unpackhi_epi64(a, a)));
}

#else

int64_t peak_u8s8(int isa) { return (void)isa, 0; }
int64_t peak_f32(int isa) { return (void)isa, 0; }
int64_t peak_bf16(int isa) { return (void)isa, 0; }

void peak_read_wide(int isa, const void *from, int64_t bytes) {
  volatile uint64_t sum = peak_read(from, bytes);
  (void)isa, (void)sum;
}

uint64_t peak_read(const void *from, int64_t bytes) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < bytes / 8; i++)
    sum += ((const uint64_t *)from)[i];
  return sum;
}

#endif
