/* onednn.h: matrix multiplication by oneDNN 3 on our packed bytes, where that is faster or bits are not asked for.
 *
 * oneDNN is a shared library, opened on first use: PERIGEE_ONEDNN (a path, or "none"), else the one this was built with, else
 * libdnnl.so.3. It need not be there. Unlike the kernels of the table these calls allocate (primitives, kept for the next call
 * of the shape) and can fail; then they say why and the caller uses a kernel of the table. Any number of threads may call; none
 * starts another: OpenMP's limit is one for the time of a call. Forking is safe.
 *
 * `isa`: the ISA in force, PGEE_REF ... The first call's is the most that oneDNN uses in this process.
 */
#ifndef PERIGEE_ONEDNN_H
#define PERIGEE_ONEDNN_H
#include <stdint.h>

/* NULL if oneDNN can be used, else why not. */
const char *onednn_missing(int isa);
/* "3.2.0", or NULL. */
const char *onednn_version(int isa);
/* NULL if onednn_u8s8 gives the exact sums that kernels of the table give, else why not: instructions that saturate, a probe
 * of extremes that came out wrong. */
const char *onednn_inexact(int isa);

/* c [rows][N] = a [rows][K rounded up to 64] times b, exact. All dense, which is what oneDNN is fast on; b is panels of
 * kernels.h. 1 if done, else 0: onednn_missing or onednn_inexact say why, or there is only a reference implementation. */
int onednn_u8s8(int isa, int32_t *c, const uint8_t *a, const int8_t *b, int64_t rows, int64_t K, int64_t N);
/* c [rows][N] = a [rows][K] times b in FP32, in oneDNN's order of summation. */
int onednn_f32(int isa, float *c, const float *a, const float *b, int64_t rows, int64_t K, int64_t N);

/* oneDNN's name for what multiplies such a shape, "brg:avx512_core_vnni", or NULL if onednn_u8s8 or onednn_f32 would return 0. */
const char *onednn_u8s8_name(int isa, int64_t rows, int64_t K, int64_t N);
const char *onednn_f32_name(int isa, int64_t rows, int64_t K, int64_t N);

#endif
