/* thread_count.c: from time to time a trial compares the number of threads in use with half or twice as many, and keeps the faster one.
 *
 * A trial is TURNS runs that alternate between the two numbers. The fastest run of each number counts, because disturbances only add
 * time. After a trial that changes nothing, the pause before the next trial doubles.
 */
#include "thread_count.h"

static const double SHORT_STEP = 100e-6; /* seconds */
enum { TURNS = 6, MIN_PAUSE = 8, MAX_PAUSE = 1024 };

/* Tries half as many threads. If fewer than the maximum are in use, every other trial tries twice as many. */
static void begin_trial(thread_count *p, int max) {
  int twice = 2 * p->threads < max ? 2 * p->threads : max, half = (p->threads + 1) / 2;
  p->other = p->threads == 1 || (p->threads < max && p->other == half) ? twice : half;
  p->turn = 0;
}

int thread_count_next(thread_count *p, int max, int may_try) {
  if (p->threads == 0 || p->threads > max)
    *p = (thread_count){.threads = max, .left = MIN_PAUSE, .pause = MIN_PAUSE, .turn = TURNS};
  if (may_try && max > 1 && p->turn == TURNS && p->left <= 0)
    begin_trial(p, max);
  return may_try && p->turn < TURNS && p->turn % 2 == 1 ? p->other : p->threads;
}

/* Fewer threads win if they are as fast, because other programs may use the CPUs. More threads must be 5 % faster. */
static int other_wins(const thread_count *p) {
  return p->other < p->threads ? p->best[1] <= p->best[0] : p->best[1] < 0.95 * p->best[0];
}

static void end_trial(thread_count *p) {
  if (other_wins(p)) {
    p->threads = p->other;
    p->other = 0;
    p->pause = MIN_PAUSE;
  } else if (p->pause < MAX_PAUSE) {
    p->pause *= 2;
  }
  p->left = p->pause;
}

void thread_count_measured(thread_count *p, int max, double seconds, int64_t steps, int64_t tokens) {
  if (max == 1)
    return;
  if (p->turn == TURNS) {
    p->left -= seconds < SHORT_STEP * (double)steps;
    return;
  }
  double *best = &p->best[p->turn % 2], each = seconds / (double)tokens;
  if (p->turn < 2 || each < *best)
    *best = each;
  if (++p->turn == TURNS)
    end_trial(p);
}
