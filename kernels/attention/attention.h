/* attention.h: FP32 attention of one head, one body (body.h) compiled for each ISA; kernels.h has the contract. */
#ifndef PERIGEE_ATTENTION_H
#define PERIGEE_ATTENTION_H
#include "kernels/kernels.h"

#define ATTENTION(isa) void attention_f32_##isa(const attention *a, int64_t q0, int64_t q1, float *scratch);

ATTENTION(ref)
ATTENTION(avx2)
ATTENTION(avx512vnni)

#endif
