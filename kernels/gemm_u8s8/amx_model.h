/* amx_model.h: AMX's tile instructions in portable C, so that the AMX kernel runs, and is tested, where the CPU has none.
 *
 * Each function follows the Operation section of its instruction in the Intel 64 and IA-32 Architectures Software Developer's
 * Manual, volume 2 (LDTILECFG, TILEZERO, TILELOADD, TDPBUSD, TDPBF16PS, TILESTORED, TILERELEASE), palette 1. Each thread has its own
 * registers. Where the CPU would raise #GP or #UD, the model does nothing but note the first reason; model_fault returns it.
 * Not modelled: a start row other than 0, which only an interrupted load or store leaves behind; it counts as a fault.
 */
#ifndef PERIGEE_GEMM_U8S8_AMX_MODEL_H
#define PERIGEE_GEMM_U8S8_AMX_MODEL_H
#include <stdint.h>

/* LDTILECFG: 64 bytes. */
void model_config(const void *configuration);
void model_zero(int t);
/* `stride` is in bytes. */
void model_load(int t, const void *base, int64_t stride);
/* c += a b: a's bytes are unsigned, b's signed. */
void model_dpbusd(int c, int a, int b);
/* c += a b: both are signed. */
void model_dpbssd(int c, int a, int b);
/* c += a b: both are BF16 in pairs, c is FP32. gemm_bf16/arithmetic.h has the arithmetic. */
void model_dpbf16ps(int c, int a, int b);
void model_store(int t, void *base, int64_t stride);
void model_release(void);
/* What this thread's first fault since the last call was, or NULL. */
const char *model_fault(void);

/* How often this thread executed each instruction since model_count_from_zero. */
typedef struct model_counts {
  int64_t configurations, zeros, loads, products, stores, releases;
} model_counts;
void model_count_from_zero(void);
model_counts model_counted(void);
/* Whether this thread's registers are configured. */
int model_configured(void);

#endif
