/* FP32 attention for avx2. */
#define NAME(f) f##_avx2
#include "../rows/v16_ref.h"

#include "body.h"
