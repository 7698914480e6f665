/* onednn.h: matrix products by oneDNN 3 on our packed weights, for linears where oneDNN is faster or equal bits are not required.
 *
 * oneDNN is a shared library that is opened on first use, not linked. Its path is PERIGEE_ONEDNN ("none" disables oneDNN), else the
 * one that this library was built with, else libdnnl.so.3. The process runs on without oneDNN if there is none. Primitives stay in a
 * cache until the process ends. If a product fails, the caller multiplies by our own kernels. Any number of threads may call. No call
 * starts a thread: OpenMP's limit is one during a call. Forking is safe.
 *
 * `isa` is the ISA in force, PGEE_REF ... The ISA of the first call limits the instructions that oneDNN uses in this process.
 */
#ifndef PERIGEE_ONEDNN_H
#define PERIGEE_ONEDNN_H
#include <stdint.h>

/* NULL if oneDNN can be used, else the reason why it cannot. */
const char *onednn_missing(int isa);
/* "3.2.0", or NULL. */
const char *onednn_version(int isa);
/* NULL if onednn_u8s8 gives the exact sums that our kernels give, else the reason why it does not: oneDNN uses instructions that
 * saturate, or its sums of the largest products are wrong. */
const char *onednn_inexact(int isa);

/* c [rows][N] = a [rows][K rounded up to 64] times the packed weight b (kernels.h), exact. All rows are dense, because oneDNN is fast
 * only then. Returns 1 if done. Returns 0 if oneDNN is missing or inexact, has only a slow reference implementation for the shape,
 * or has no memory. */
int onednn_u8s8(int isa, int32_t *c, const uint8_t *a, const int8_t *b, int64_t rows, int64_t K, int64_t N);
/* c [rows][N] = a [rows][K] times b in FP32, in oneDNN's order of summation. */
int onednn_f32(int isa, float *c, const float *a, const float *b, int64_t rows, int64_t K, int64_t N);

/* oneDNN's name of the implementation for a shape, such as "brg:avx512_core_vnni". NULL if onednn_u8s8 or onednn_f32 would return 0. */
const char *onednn_u8s8_name(int isa, int64_t rows, int64_t K, int64_t N);
const char *onednn_f32_name(int isa, int64_t rows, int64_t K, int64_t N);

#endif
