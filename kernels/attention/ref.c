/* FP32 attention for the portable reference. */
#define NAME(f) f##_ref
#include "kernels/rows/v16_ref.h"

#include "body.h"
