/* peak.c: what the threads in force can do at most, all at once. The loops are in kernels/peak.c. */
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
  int64_t bytes; /* PARTS of them: a try reads one, too short for the system to take the CPU away in each */
  double best;   /* of all threads together, a second */
} measuring;

/* This thread's part of a try: multiply-adds, or bytes. */
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
  if (m->memory) /* pages that nobody has written to are all one page, which stays in the cache */
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

/* More than the caches of a socket hold: two of its last ones, 256 MB to 1 GB. */
static int64_t beyond_caches(void) {
  int64_t least = INT64_C(256) << 20, most = INT64_C(1) << 30, bytes = 2 * (int64_t)sysconf(_SC_LEVEL3_CACHE_SIZE);
  return bytes < least ? least : bytes > most ? most : bytes;
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
    return fail(PGEE_ARGUMENT, "%d is no peak, expected PGEE_PEAK_INT8, PGEE_PEAK_F32 or PGEE_PEAK_READ", what);
  if (tries < 1)
    return fail(PGEE_ARGUMENT, "%d tries, expected 1 or more", tries);
  TRY(pgee_threads(&threads));
  measuring m = {.what = what, .tries = tries};
  if (what == PGEE_PEAK_READ)
    TRY(measure_memory(&m, threads));
  else
    TRY(team_run(measure, &m, threads, NULL, NULL, 0));
  *per_second = what == PGEE_PEAK_READ ? m.best : 2 * m.best;
  return PGEE_OK;
}
