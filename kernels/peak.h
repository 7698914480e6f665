/* peak.h: the peak speed of a CPU, with which benches compare the kernels. */
#ifndef PERIGEE_PEAK_H
#define PERIGEE_PEAK_H
#include <stdint.h>

/* Runs the multiplying instruction of the ISA on registers alone for about 30 microseconds: u8 times s8 summed in int32, or FP32 fma.
 * Returns the number of multiply-adds; 0 for an ISA without such an instruction (ref, amx-model). */
int64_t peak_u8s8(int isa);
int64_t peak_f32(int isa);
/* The same of BF16: vdpbf16ps on avx512vnni, tdpbf16ps on amx. 0 for the other ISAs, and if the CPU lacks AVX512-BF16. */
int64_t peak_bf16(int isa);
/* Reads `bytes` bytes of memory, a multiple of 64. The result depends on all of them. */
uint64_t peak_read(const void *from, int64_t bytes);
/* Reads `bytes` bytes, a multiple of 512, with the widest loads of the ISA. `from` is a multiple of 64. */
void peak_read_wide(int isa, const void *from, int64_t bytes);

#endif
