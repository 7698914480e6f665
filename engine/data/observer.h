/* observer.h: what an observer is inside the engine. */
#ifndef PERIGEE_OBSERVER_H
#define PERIGEE_OBSERVER_H
#include <stdatomic.h>
#include <stdint.h>

#include "engine/perigee.h"

struct pgee_observer {
  _Atomic int64_t refs;
  int64_t K, count;
  float *min, *max;       /* [K] each, of all rows so far; infinity and -infinity before the first row */
  float *low, *high;      /* [K] each, with the rows of the update in progress */
  _Atomic int nonfinite;  /* 1: these rows have a value that is not finite */
  int64_t capacity, kept; /* rows of the sample */
  float *rows;            /* [capacity][K] */
  int64_t *numbers;       /* [capacity] the number of each row of the sample, counted over all rows seen */
  int64_t leaver;         /* once the sample is full: the row that the next chosen one replaces */
  char *name;             /* or NULL */
};

pgee_observer *observer_hold(const pgee_observer *o);
/* Counts one more row, and takes it into the sample if its hash is small enough. */
void observer_sample(pgee_observer *o, const float *row);

#endif
