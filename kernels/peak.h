/* peak.h: what a CPU can do at most, for benches to compare with. */
#ifndef PERIGEE_PEAK_H
#define PERIGEE_PEAK_H
#include <stdint.h>

/* The ISA's multiplying instruction again and again, on registers alone: u8 x s8 summed in int32, or FP32 fma. Some 30
 * microseconds. Returns the multiply-adds done; 0 for an ISA that has none (ref, amx-model). */
int64_t peak_u8s8(int isa);
int64_t peak_f32(int isa);
/* Reads memory, a multiple of 64 bytes. The result depends on all of it. */
uint64_t peak_read(const void *from, int64_t bytes);

#endif
