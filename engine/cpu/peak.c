/* peak.c: measures the peak speed of all threads together. The loops are in kernels/peak.c. */
#include "kernels/peak.h"

#include <string.h>
#include <unistd.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "team.h"

enum { PARTS = 32 };

typedef struct measuring {
  int what, tries;
  char *memory;  /* bytes for each thread */
  int64_t bytes; /* in PARTS parts. One try reads one part: so little that the system interrupts only some of the tries */
  double best;   /* the highest rate of all threads together, per second */
} measuring;

/* Runs this thread's part of one try. Returns the number of multiply-adds or bytes. */
static int64_t work_of(const measuring *m, const context *c, int part) {
  if (m->what == PGEE_PEAK_INT8)
    return peak_u8s8(c->k->isa);
  if (m->what == PGEE_PEAK_F32)
    return peak_f32(c->k->isa);
  volatile uint64_t sum = peak_read(m->memory + c->thread * m->bytes + part * (m->bytes / PARTS), m->bytes / PARTS);
  (void)sum;
  return m->bytes / PARTS;
}

static void measure(void *work, const context *c) {
  measuring *m = work;
  if (m->memory) /* all pages without a write are the same physical page, which would stay in the cache */
    memset(m->memory + c->thread * m->bytes, 1, (size_t)m->bytes);
  for (int i = 0; i < m->tries; i++) {
    team_barrier(c);
    double began = pgee_seconds();
    int64_t done = work_of(m, c, i % PARTS);
    team_barrier(c);
    double rate = (double)(done * c->threads) / (pgee_seconds() - began);
    if (c->thread == 0 && rate > m->best)
      m->best = rate;
  }
}

/* Bytes that do not fit the caches of a socket: twice the last-level cache, 256 MB to 1 GB. */
static int64_t beyond_caches(void) {
  int64_t min = INT64_C(256) << 20, max = INT64_C(1) << 30, bytes = 2 * (int64_t)sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes < min ? min : bytes > max ? max : bytes;
}

static int measure_memory(measuring *m, int threads) {
  m->bytes = beyond_caches() / threads / (PARTS * 64) * (PARTS * 64);
  m->memory = mem_array(threads, m->bytes);
  if (!m->memory)
    return PGEE_MEMORY;
  int status = team_run(measure, m, threads, NULL, NULL, 0);
  mem_free(m->memory);
  return status;
}

int pgee_cpu_peak(int what, int tries, double *per_second) {
  NEED(per_second);
  int threads;
  if (what < PGEE_PEAK_INT8 || what > PGEE_PEAK_READ)
    return fail(PGEE_ARGUMENT, "what is %d, expected PGEE_PEAK_INT8, PGEE_PEAK_F32 or PGEE_PEAK_READ", what);
  if (tries < 1)
    return fail(PGEE_ARGUMENT, "tries is %d, expected 1 or more", tries);
  TRY(pgee_threads(&threads));
  measuring m = {.what = what, .tries = tries};
  if (what == PGEE_PEAK_READ)
    TRY(measure_memory(&m, threads));
  else
    TRY(team_run(measure, &m, threads, NULL, NULL, 0));
  *per_second = what == PGEE_PEAK_READ ? m.best : 2 * m.best;
  return PGEE_OK;
}
