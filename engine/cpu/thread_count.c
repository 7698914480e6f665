/* pace.c: tries half as many threads, or twice as many, now and then, and keeps what is faster.
 *
 * A trial is a few runs by turns with as many threads as before and with the other number; the least of each counts, since
 * everything that disturbs only adds. Where a trial changes nothing the pause before the next one doubles.
 */
#include "thread_count.h"

static const double SHORT_STEP = 100e-6; /* seconds */
enum { TURNS = 6, FIRST_PAUSE = 8, LONGEST_PAUSE = 1024 };

static void begin_trial(pace *p, int most) {
  int twice = 2 * p->threads < most ? 2 * p->threads : most, half = (p->threads + 1) / 2;
  /* Downwards, and from below the top by turns upwards. */
  p->other = p->threads == 1 || (p->threads < most && p->other == half) ? twice : half;
  p->turn = 0;
}

int pace_threads(pace *p, int most, int may_try) {
  if (p->threads == 0 || p->threads > most)
    *p = (pace){.threads = most, .left = FIRST_PAUSE, .pause = FIRST_PAUSE, .turn = TURNS};
  if (may_try && most > 1 && p->turn == TURNS && p->left <= 0)
    begin_trial(p, most);
  return may_try && p->turn < TURNS && p->turn % 2 == 1 ? p->other : p->threads;
}

/* Fewer threads are preferred where both are as fast: others may use the CPUs. */
static int other_wins(const pace *p) { return p->other < p->threads ? p->best[1] <= p->best[0] : p->best[1] < 0.95 * p->best[0]; }

static void end_trial(pace *p) {
  if (other_wins(p)) {
    p->threads = p->other;
    p->other = 0;
    p->pause = FIRST_PAUSE;
  } else if (p->pause < LONGEST_PAUSE) {
    p->pause *= 2;
  }
  p->left = p->pause;
}

void pace_took(pace *p, int most, double seconds, int64_t steps, int64_t tokens) {
  if (most == 1)
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
