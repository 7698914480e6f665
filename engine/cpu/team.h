/* team.h: the threads, and what a thread knows about the phase it takes part in.
 *
 * A phase is one function run by all threads of the team at once; the caller is thread 0. Threads are started at the first
 * phase that needs them, rebuilt after fork, parked on a futex when idle. Two callers at once: the second runs its phase
 * alone.
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
  int64_t T, B, S, R;        /* of the batch; 0 without one */
  char *scratch;             /* of this thread, aligned to 64, as large as the operator's scratch() asked for */
  char *shared;              /* thread 0's scratch */
  int64_t step;              /* of a plan; 0 elsewhere */
  weight_span next_weights;  /* what this thread reads next, in a later step of the plan */
  int64_t prefetch_distance; /* weights are prefetched so many bytes before they are used; 0: one piece before */
  failure *failed;           /* of the phase */
} context;

typedef void phase(void *work, const context *c);

/* Runs f(work) on `threads` threads (0 or more than pgee_threads: pgee_threads) and returns when all have. scratch:
 * `scratch_bytes` for each thread, one after another, or NULL. MXCSR is set to the default for its time. PGEE_SYSTEM, and
 * nothing was run, if a thread could not be started; else what phase_fail was told. */
int team_run(phase *f, void *work, int threads, const pgee_batch *batch, char *scratch, int64_t scratch_bytes);
/* Waits for every thread of the phase. */
void team_barrier(const context *c);

/* Fails the phase: the first to say so decides what team_run returns. Others learn of it at the next barrier. */
void phase_fail(const context *c, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Whether the phase failed in a step before c->step, or in it and a barrier has passed since: the same answer for every
 * thread. */
int phase_failed(const context *c);

/* Round to nearest, denormals as they are: what every phase runs under. For float work outside of a phase; returns what to
 * restore. */
unsigned float_default(void);
void float_restore(unsigned state);

/* This thread's share of n items, first to last (excluded); shares differ by at most one. */
void share(const context *c, int64_t n, int64_t *first, int64_t *last);
/* The context of one thread for an operator's work(): no team behind it. */
context context_of(const pgee_batch *batch, int thread, int threads);

#endif
