/* observer.h: what an observer is inside the engine. */
#ifndef PERIGEE_OBSERVER_H
#define PERIGEE_OBSERVER_H
#include <stdatomic.h>
#include <stdint.h>

#include "engine/perigee.h"

struct pgee_observer {
  _Atomic int64_t refs;
  int64_t K, count;
  float *min, *max;       /* [K] each, of all rows so far */
  float *low, *high;      /* [K] each, with the rows being taken in */
  _Atomic int nonfinite;  /* they have one that is not finite */
  int64_t capacity, kept; /* rows of the sample */
  float *rows;            /* [capacity][K] */
  int64_t *numbers;       /* [capacity] of the rows in the stream */
  int64_t leaver;         /* which of them leaves when a better one comes, once the sample is full */
  char *name;             /* or NULL */
};

pgee_observer *observer_hold(const pgee_observer *o);
/* Takes one more row into account for the sample. */
void observer_sample(pgee_observer *o, const float *row);

#endif
