/* FP32 attention for avx512vnni. */
#define NAME(f) f##_avx512vnni
#include "kernels/rows/v16_avx512.h"

#include "body.h"
