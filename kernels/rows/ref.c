/* The row operators for the portable reference. */
#define NAME(f) f##_ref
#include "v16_ref.h"

#include "body.h"
