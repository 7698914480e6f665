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
  char *memory;      /* bytes for each thread */
  int64_t bytes;     /* in `parts` parts. One try reads one part: so little that the system interrupts only some of the tries */
  int parts, passes; /* how often a try reads its part */
  double best;       /* the highest rate of all threads together, per second */
} measuring;

/* Runs this thread's part of one try. Returns the number of multiply-adds or bytes. */
static int64_t work_of(const measuring *m, const context *c, int part) {
  if (m->what == PGEE_PEAK_INT8)
    return peak_u8s8(c->k->isa);
  if (m->what == PGEE_PEAK_F32)
    return peak_f32(c->k->isa);
  if (m->what == PGEE_PEAK_BF16)
    return peak_bf16(c->k->isa);
  int64_t bytes = m->bytes / m->parts;
  const char *from = m->memory + c->thread * m->bytes + part * bytes;
  if (m->what == PGEE_PEAK_READ) {
    volatile uint64_t sum = peak_read(from, bytes);
    (void)sum;
    return bytes;
  }
  for (int pass = 0; pass < m->passes; pass++)
    peak_read_wide(c->k->isa, from, bytes);
  return bytes * m->passes;
}

static void measure(void *work, const context *c) {
  measuring *m = work;
  if (m->memory) /* all pages without a write are the same physical page, which would stay in the cache */
    memset(m->memory + c->thread * m->bytes, 1, (size_t)m->bytes);
  for (int i = 0; i < m->tries; i++) {
    team_barrier(c);
    double began = pgee_seconds();
    int64_t done = work_of(m, c, i % m->parts);
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

/* How many bytes each thread reads again and again to measure a cache: half of a second-level cache; of the third level, a part that is
 * four times as large as a second-level cache if all threads' parts fit, at least twice as large. 0: this cannot be measured. */
static int64_t within_cache(int what, int threads) {
  int64_t l2 = sysconf(_SC_LEVEL2_CACHE_SIZE), l3 = sysconf(_SC_LEVEL3_CACHE_SIZE) / threads / 2;
  if (l2 <= 0)
    return 0;
  if (what == PGEE_PEAK_L2)
    return l2 / 2 / 512 * 512;
  return l3 < 2 * l2 ? 0 : (l3 < 4 * l2 ? l3 : 4 * l2) / 512 * 512;
}

static int measure_reading(measuring *m, int threads) {
  if (m->what == PGEE_PEAK_READ) {
    m->parts = PARTS;
    m->bytes = beyond_caches() / threads / (PARTS * 64) * (PARTS * 64);
  } else {
    m->bytes = within_cache(m->what, threads);
    m->passes = m->what == PGEE_PEAK_L2 ? 4 : 1;
    if (m->bytes == 0)
      return PGEE_OK;
  }
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
  if (what < PGEE_PEAK_INT8 || what > PGEE_PEAK_L3)
    return fail(PGEE_ARGUMENT, "what is %d, expected one of the PGEE_PEAK constants, 0 to %d", what, PGEE_PEAK_L3);
  if (tries < 1)
    return fail(PGEE_ARGUMENT, "tries is %d, expected 1 or more", tries);
  TRY(pgee_threads(&threads));
  measuring m = {.what = what, .tries = tries, .parts = 1};
  int reading = what == PGEE_PEAK_READ || what == PGEE_PEAK_L2 || what == PGEE_PEAK_L3;
  if (reading)
    TRY(measure_reading(&m, threads));
  else
    TRY(team_run(measure, &m, threads, NULL, NULL, 0));
  *per_second = reading ? m.best : 2 * m.best;
  return PGEE_OK;
}
