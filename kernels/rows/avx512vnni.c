/* The row operators for avx512vnni. */
#define NAME(f) f##_avx512vnni
#include "v16_avx512.h"

#include "body.h"
