/* The row operators for avx2. */
#define NAME(f) f##_avx2
#include "v16_ref.h"

#include "body.h"
