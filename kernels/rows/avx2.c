/* The row operators for avx2. */
#define NAME(f) f##_avx2
#include "v16_avx2.h"

#include "body.h"
