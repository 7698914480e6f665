/* pace.h: how many threads a run is worth. Threads cost a barrier between two steps; where these are short, or where two CPUs are
 * one core, or busy with something else, fewer are faster. Bits do not depend on it. */
#ifndef PERIGEE_PACE_H
#define PERIGEE_PACE_H
#include <stdint.h>

/* Of runs of about one size. */
typedef struct pace {
  int threads;    /* that runs use; 0: none has been yet */
  int other;      /* that are on trial beside them, or 0 */
  int turn;       /* of the trial: 0, 2, ... run with `threads`, 1, 3, ... with `other` */
  int64_t left;   /* runs until the next trial */
  int64_t pause;  /* as many as there were before this one */
  double best[2]; /* the least seconds a token of each, in the trial */
} pace;

/* Threads for the next run, from 1 to `most`. may_try: 0 leaves trials aside; such a run is not to be told of. */
int pace_threads(pace *p, int most, int may_try);
/* What that run took: seconds, and how many steps and tokens it had. Nothing is tried where steps are long: a barrier is nothing
 * to them. Runs that are not quite of one size are compared by what they took for each token. */
void pace_took(pace *p, int most, double seconds, int64_t steps, int64_t tokens);

#endif
