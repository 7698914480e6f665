/* FP32 attention for avx2. */
#define NAME(f) f##_avx2
#include "kernels/rows/v16_avx2.h"

#include "body.h"
