/* The row operators for avx512vnni. */
#define NAME(f) f##_avx512vnni
#include "v16_ref.h"

#include "body.h"
