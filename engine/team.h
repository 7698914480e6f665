/* team.h: the threads, and what a thread knows about the phase it takes part in.
 *
 * A phase is one function run by all threads of the team at once; the caller is thread 0. Threads are started at the first phase that
 * needs them, rebuilt after fork, parked on a futex when idle. Two callers at once: the second runs its phase alone.
 */
#ifndef PERIGEE_TEAM_H
#define PERIGEE_TEAM_H
#include <stdint.h>

#include "perigee.h"
#include "../kernels/kernels.h"

typedef struct team team;

typedef struct context {
  int thread, threads;    /* 0 <= thread < threads */
  const kernels *k;       /* the ISA in force when the phase began */
  const pgee_batch *batch; /* may be NULL */
  int64_t T, B, S;        /* of the batch; 0 without one */
  char *scratch;          /* of this thread, aligned to 64, as large as the operator's scratch() asked for */
  team *team;
} context;

typedef void phase(void *work, const context *c);

/* Runs `work` on `threads` threads (at most pgee_threads) and returns when all have. scratch: `bytes` for each thread, one after
 * another, or NULL. MXCSR is set to the default for its time. */
int team_run(phase *f, void *work, const pgee_batch *batch, char *scratch, int64_t scratch_bytes);
/* Waits for every thread of the phase. */
void team_barrier(const context *c);

/* This thread's share of n items, first to last (excluded); shares differ by at most one. */
void share(const context *c, int64_t n, int64_t *first, int64_t *last);

#endif
