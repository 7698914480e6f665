/* quantizer.h: what the operators that quantize their result share. */
#ifndef PERIGEE_QUANTIZER_H
#define PERIGEE_QUANTIZER_H
#include "engine/perigee.h"
#include "kernels/kernels.h"

/* Checks a pgee_quantizer for an operator whose result has rows like those of `like` and K values in each. Bit 1 << mode of
 * `modes` is set for each mode that the operator supports. */
int quantizer_check(const pgee_quantizer *q, unsigned modes, const pgee_tensor *like, int64_t K);
/* The kernels' form of a pgee_quantizer that quantizer_check has accepted. */
quantizer quantizer_lower(const pgee_quantizer *q);

#endif
