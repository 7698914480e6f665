/* observer.c: the sample of an observer, its handle, and reading its statistics. The operator in observe.c adds rows.
 *
 * The sample holds the rows whose numbers have the smallest hashes. This choice is uniform, depends only on the number of rows,
 * and can be made for each row when it comes. */
#include "observer.h"

#include <math.h>
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "tensor.h"

enum { MAX_CHANNELS = 1 << 24, MAX_SAMPLE = 1 << 24 };

/* splitmix64 (Steele, Lea, Flood 2014): a bijection, so no two rows tie. */
static uint64_t hash(int64_t number) {
  uint64_t z = (uint64_t)number * 0x9e3779b97f4a7c15u + 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static int64_t largest_hash(const pgee_observer *o) {
  int64_t at = 0;
  for (int64_t i = 1; i < o->kept; i++)
    if (hash(o->numbers[i]) > hash(o->numbers[at]))
      at = i;
  return at;
}

void observer_sample(pgee_observer *o, const float *row) {
  int64_t number = o->count++, at = o->kept;
  if (o->kept < o->capacity)
    o->kept++;
  else if (o->capacity > 0 && hash(number) < hash(o->numbers[o->leaver]))
    at = o->leaver;
  else
    return;
  o->numbers[at] = number;
  memcpy(o->rows + at * o->K, row, (size_t)o->K * sizeof *row);
  if (o->kept == o->capacity)
    o->leaver = largest_hash(o);
}

/* ---- Handles ------------------------------------------------------------------------------------------------------ */

pgee_observer *observer_hold(const pgee_observer *o) {
  pgee_observer *held = (pgee_observer *)o;
  if (held)
    atomic_fetch_add(&held->refs, 1);
  return held;
}

void pgee_observer_free(pgee_observer *o) {
  if (!o || atomic_fetch_sub(&o->refs, 1) > 1)
    return;
  mem_free(o->min);
  mem_free(o->rows);
  mem_free(o->numbers);
  mem_free(o->name);
  mem_free(o);
}

int pgee_observer_new(pgee_observer **out, int64_t K, int64_t sample_rows, const char *name) {
  NEED(out);
  if (K < 1 || K > MAX_CHANNELS)
    return fail(PGEE_ARGUMENT, "an observer of %lld channels, expected 1 to %d", (long long)K, MAX_CHANNELS);
  if (sample_rows < 0 || sample_rows > MAX_SAMPLE)
    return fail(PGEE_ARGUMENT, "a sample of %lld rows, expected 0 to %d", (long long)sample_rows, MAX_SAMPLE);
  pgee_observer *o = mem_new(sizeof *o);
  if (!o)
    return PGEE_MEMORY;
  o->refs = 1;
  o->K = K;
  o->capacity = sample_rows;
  o->min = mem_array(4 * K, sizeof *o->min);
  o->rows = mem_array(sample_rows * K, sizeof *o->rows);
  o->numbers = mem_array(sample_rows, sizeof *o->numbers);
  o->name = name ? mem_string(name) : NULL;
  if (!o->min || !o->rows || !o->numbers || (name && !o->name)) {
    pgee_observer_free(o);
    return PGEE_MEMORY;
  }
  o->max = o->min + K;
  o->low = o->max + K;
  o->high = o->low + K;
  for (int64_t k = 0; k < K; k++) {
    o->min[k] = INFINITY;
    o->max[k] = -INFINITY;
  }
  *out = o;
  return PGEE_OK;
}

/* ---- Reading ------------------------------------------------------------------------------------------------------ */

int64_t pgee_observer_channels(const pgee_observer *o) { return o ? o->K : 0; }
int64_t pgee_observer_count(const pgee_observer *o) { return o ? o->count : 0; }

int pgee_observer_update(pgee_observer *o, const pgee_tensor *x) {
  NEED(o, x);
  return pgee_run(PGEE_OBSERVE, &(pgee_observe_args){x, o}, NULL);
}

/* Which of the ranges is read: with 0 or without it. */
enum { WITHOUT_ZERO, WITH_ZERO };

static int copy_min(pgee_tensor **out, const pgee_observer *o, int zero) {
  TRY(pgee_tensor_new(out, PGEE_F32, 1, &o->K));
  for (int64_t k = 0; k < o->K; k++)
    ((float *)(*out)->data)[k] = o->count == 0 || (zero && !(o->min[k] < 0)) ? 0 : o->min[k];
  return PGEE_OK;
}

static int copy_max(pgee_tensor **out, const pgee_observer *o, int zero) {
  TRY(pgee_tensor_new(out, PGEE_F32, 1, &o->K));
  for (int64_t k = 0; k < o->K; k++)
    ((float *)(*out)->data)[k] = o->count == 0 || (zero && !(o->max[k] > 0)) ? 0 : o->max[k];
  return PGEE_OK;
}

/* Copies the sample in the order in which the rows came: the place of a row is the number of earlier rows in the sample. */
static int copy_sample(pgee_tensor **out, const pgee_observer *o) {
  TRY(pgee_tensor_new(out, PGEE_F32, 2, (int64_t[]){o->kept, o->K}));
  float *to = (*out)->data;
  for (int64_t i = 0; i < o->kept; i++) {
    int64_t place = 0;
    for (int64_t j = 0; j < o->kept; j++)
      place += o->numbers[j] < o->numbers[i];
    memcpy(to + place * o->K, o->rows + i * o->K, (size_t)o->K * sizeof *to);
  }
  return PGEE_OK;
}

static int read_some(const pgee_observer *o, pgee_tensor **min, pgee_tensor **max, pgee_tensor **sample, int zero) {
  pgee_tensor *made[3] = {NULL, NULL, NULL};
  int status = min ? copy_min(&made[0], o, zero) : PGEE_OK;
  if (status == PGEE_OK && max)
    status = copy_max(&made[1], o, zero);
  if (status == PGEE_OK && sample)
    status = copy_sample(&made[2], o);
  pgee_tensor **out[3] = {min, max, sample};
  for (int i = 0; i < 3; i++) {
    if (status != PGEE_OK)
      pgee_tensor_free(made[i]);
    else if (out[i])
      *out[i] = made[i];
  }
  return status;
}

int pgee_observer_read(const pgee_observer *o, pgee_tensor **min, pgee_tensor **max, pgee_tensor **sample) {
  NEED(o);
  return read_some(o, min, max, sample, WITH_ZERO);
}

int pgee_observer_extremes(const pgee_observer *o, pgee_tensor **low, pgee_tensor **high) {
  NEED(o);
  return read_some(o, low, high, NULL, WITHOUT_ZERO);
}
