/* team.h: the threads of the library, and what a thread knows about the phase that it runs.
 *
 * A phase is one function that all threads of the team run at the same time. The thread that calls team_run is thread 0. The others are
 * started by the first phase that needs them, sleep on a futex when idle, and are started again in a forked child. If two threads call
 * team_run at the same time, the second one runs its phase alone, without the team.
 */
#ifndef PERIGEE_TEAM_H
#define PERIGEE_TEAM_H
#include <stdint.h>

#include "engine/perigee.h"
#include "kernels/kernels.h"

typedef struct failure failure;

/* Packed weights that a thread reads from `from` to `from + bytes`, in pieces of `piece` bytes: it reads one piece once for each
 * tile of rows, then the next piece. bytes 0: no weights. */
typedef struct weight_span {
  const char *from;
  int64_t bytes, piece;
} weight_span;

typedef struct context {
  int thread, threads;       /* 0 <= thread < threads */
  const kernels *k;          /* the ISA in force when the phase began */
  const pgee_batch *batch;   /* may be NULL */
  int64_t T, B, S, R;        /* sizes of the batch (perigee.h); 0 without a batch */
  char *scratch;             /* memory of this thread, aligned to 64, of the size that the operator's scratch() returned */
  char *shared;              /* thread 0's scratch */
  int64_t step;              /* the number of the plan's step, from 0; 0 outside of plans */
  weight_span next_weights;  /* the weights that this thread reads in a later step of the plan */
  int64_t prefetch_distance; /* bytes from the weights in use to those that are prefetched; 0: one piece */
  failure *failed;           /* shared by all threads of the phase */
} context;

typedef void phase(void *work, const context *c);

/* Runs f(work) on `threads` threads and returns when all have finished. threads: 0, or more than pgee_threads, means pgee_threads.
 * scratch: `scratch_bytes` for each thread, one after another, or NULL. The phase runs under the default floating-point environment.
 * Returns PGEE_SYSTEM, without running f, if a thread cannot be started; otherwise the status that team_fail was called with, or
 * PGEE_OK. */
int team_run(phase *f, void *work, int threads, const pgee_batch *batch, char *scratch, int64_t scratch_bytes);
/* Waits for every thread of the phase. */
void team_barrier(const context *c);

/* Makes the phase fail: team_run returns the status and message of the first call. The other threads see the failure after the next
 * barrier. */
void team_fail(const context *c, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* 1 if the phase failed in a step before c->step, or in this step before the last barrier. All threads get the same answer. */
int team_failed(const context *c);

/* Sets the default floating-point environment: round to nearest, denormals kept. Phases run under it; call this for float work outside
 * of a phase. Returns the state to restore. */
unsigned team_float_default(void);
void team_float_restore(unsigned state);

/* This thread's share of n items: first to last (excluded). The sizes of the shares differ by at most one. */
void team_share(const context *c, int64_t n, int64_t *first, int64_t *last);
/* A context for an operator's work(), which counts the work of one thread without running it. */
context team_context(const pgee_batch *batch, int thread, int threads);

#endif
