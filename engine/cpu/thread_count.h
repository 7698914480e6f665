/* thread_count.h: the adaptive number of threads of a plan's runs.
 *
 * Every thread waits for all others at a barrier between two steps. Fewer threads are faster if the steps are short, if two CPUs share
 * one core, or if other programs use the CPUs. This module measures runs and keeps the number of threads that is faster. The
 * results have the same bits for every number.
 */
#ifndef PERIGEE_THREAD_COUNT_H
#define PERIGEE_THREAD_COUNT_H
#include <stdint.h>

/* The state for runs of about equal size; all zeros at the beginning. */
typedef struct thread_count {
  int threads;    /* the number that runs use; 0 before the first run */
  int other;      /* the number that a trial compares with `threads`; 0 if there is no trial */
  int turn;       /* the next run of the trial: even ones use `threads`, odd ones `other` */
  int64_t left;   /* runs until the next trial */
  int64_t pause;  /* runs between the last trial and the next one */
  double best[2]; /* the fewest seconds per token in this trial, of `threads` and of `other` */
} thread_count;

/* The number of threads for the next run, from 1 to `max`. may_try 0: the run takes part in no trial; do not pass its time to
 * thread_count_measured. */
int thread_count_next(thread_count *p, int max, int may_try);
/* Records that run: how many seconds it took, how many steps and how many tokens it had. Runs are compared by seconds per token, because
 * their sizes differ a little. If steps are long, barriers cost nothing, and there will be no trial. */
void thread_count_measured(thread_count *p, int max, double seconds, int64_t steps, int64_t tokens);

#endif
