/* FP32 attention for avx512vnni. */
#define NAME(f) f##_avx512vnni
#include "../rows/v16_avx512.h"

#include "body.h"
