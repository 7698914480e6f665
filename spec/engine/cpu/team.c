/* team.c: phases, barriers and OS threads for specs and for the figures in engine/README.md. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "engine/cpu/team.h"
#include "engine/cpu/threads.h"

#define SHOWN __attribute__((visibility("default")))

/* ---- Phases ------------------------------------------------------------------------------------------------------- */

typedef struct rounds {
  int64_t count;
  _Atomic int64_t entered, early; /* passages of all threads; those that left a barrier before all had come */
} rounds;

static void go_round(void *work, const context *c) {
  rounds *r = work;
  for (int64_t i = 0; i < r->count; i++) {
    atomic_fetch_add(&r->entered, 1);
    team_barrier(c);
    if (r->entered < (i + 1) * c->threads)
      r->early++;
    team_barrier(c);
  }
}

/* `count` rounds of two barriers; how often a thread left one too early, or -1 if the phase failed or did not have all
 * threads. */
SHOWN int64_t spec_rounds(int threads, int64_t count);
int64_t spec_rounds(int threads, int64_t count) {
  rounds r = {.count = count};
  if (team_run(go_round, &r, threads, NULL, NULL, 0) != PGEE_OK || r.entered != count * threads)
    return -1;
  return r.early;
}

static void wait_only(void *work, const context *c) {
  for (int64_t i = 0; i < *(const int64_t *)work; i++)
    team_barrier(c);
}

/* Seconds that a barrier takes, and a phase that does nothing; the least of several tries. */
SHOWN double spec_barrier_seconds(int threads);
double spec_barrier_seconds(int threads) {
  double least = 1;
  int64_t count = 100;
  for (int i = 0; i < 300; i++) {
    double began = pgee_seconds();
    team_run(wait_only, &count, threads, NULL, NULL, 0);
    double took = (pgee_seconds() - began) / (double)count;
    least = took < least ? took : least;
  }
  return least;
}

SHOWN double spec_phase_seconds(int threads);
double spec_phase_seconds(int threads) {
  double least = 1;
  int64_t count = 0;
  for (int i = 0; i < 300; i++) {
    double began = pgee_seconds();
    for (int j = 0; j < 5; j++)
      team_run(wait_only, &count, threads, NULL, NULL, 0);
    double took = (pgee_seconds() - began) / 5;
    least = took < least ? took : least;
  }
  return least;
}

typedef struct failing {
  int64_t steps, fail_at;
  int thread;
  _Atomic int64_t done; /* steps that all threads did together */
} failing;

static void fail_once(void *work, const context *common) {
  failing *f = work;
  context c = *common;
  for (c.step = 0; c.step < f->steps; c.step++) {
    atomic_fetch_add(&f->done, 1);
    if (c.step == f->fail_at && c.thread == f->thread)
      team_fail(&c, PGEE_FORMAT, "step %d on thread %d", (int)c.step, c.thread);
    team_barrier(&c);
    if (team_failed(&c))
      return;
  }
}

/* A phase of `steps` steps in which one thread fails one; what team_run returned, and the steps done by all threads together. */
SHOWN int spec_fail(int threads, int64_t steps, int64_t fail_at, int thread, int64_t *done);
int spec_fail(int threads, int64_t steps, int64_t fail_at, int thread, int64_t *done) {
  failing f = {.steps = steps, .fail_at = fail_at, .thread = thread};
  int status = team_run(fail_once, &f, threads, NULL, NULL, 0);
  *done = f.done;
  return status;
}

static void add_share(void *work, const context *c) {
  int64_t *ranges = work;
  team_share(c, ranges[0], &ranges[1 + 2 * c->thread], &ranges[2 + 2 * c->thread]);
}

/* team_share() of n items on each thread: ranges[threads][2]. */
SHOWN int spec_share(int threads, int64_t n, int64_t *ranges);
int spec_share(int threads, int64_t n, int64_t *ranges) {
  int64_t all[1 + 2 * MAX_THREADS] = {n};
  int status = team_run(add_share, all, threads, NULL, NULL, 0);
  memcpy(ranges, all + 1, (size_t)threads * 2 * sizeof *ranges);
  return status;
}

/* ---- What a thread finds and leaves ------------------------------------------------------------------------------- */

/* States of the floating-point environment: default, round toward zero, flush denormals, round down. */
enum { FLOAT_STATES = 4 };
#ifdef __x86_64__
static const unsigned float_states[FLOAT_STATES] = {0x1f80, 0x7f80, 0x9fc0, 0x3f80}; /* MXCSR */
static unsigned float_state(void) { return __builtin_ia32_stmxcsr() & 0xffc0u; }
#else
static const unsigned float_states[FLOAT_STATES] = {0, 3u << 22, 1u << 24, 2u << 22}; /* AArch64's FPCR */
static unsigned float_state(void) {
  unsigned state = team_float_default();
  team_float_restore(state);
  return state & 7u << 22;
}
#endif

typedef struct found {
  unsigned state[MAX_THREADS];
  int blocked[MAX_THREADS]; /* SIGINT is */
} found;

static void look(void *work, const context *c) {
  found *f = work;
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  f->state[c->thread] = float_state();
  f->blocked[c->thread] = sigismember(&mask, SIGINT);
}

/* The caller runs a phase in float_states[state]. Returns 0 if all threads of the phase had the default state, the caller got its
 * own state back, and only workers block signals. */
SHOWN int spec_float_state(int threads, int state);
int spec_float_state(int threads, int state) {
  found f;
  unsigned before = team_float_default();
  team_float_restore(float_states[state]);
  int bad = team_run(look, &f, threads, NULL, NULL, 0) != PGEE_OK;
  bad |= float_state() != float_states[state];
  team_float_restore(before);
  for (int i = 0; i < threads; i++)
    bad |= f.state[i] != float_states[0] || f.blocked[i] != (i > 0);
  return bad;
}

/* ---- Processes ---------------------------------------------------------------------------------------------------- */

/* CPU seconds that this process has used. */
SHOWN double spec_cpu_seconds(void);
double spec_cpu_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Lets this process have `more` bytes of address space than now; 0 if that could be set. */
SHOWN int spec_limit_memory(int64_t more);
int spec_limit_memory(int64_t more) {
  long pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld", &pages) != 1)
    return -1;
  fclose(f);
  rlim_t limit = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (rlim_t)more;
  return setrlimit(RLIMIT_AS, &(struct rlimit){limit, limit});
}

SHOWN int spec_threads_from(const char *root, const int *cpus, int count);
int spec_threads_from(const char *root, const int *cpus, int count) { return threads_from(root, cpus, count); }

/* ---- Several callers at once -------------------------------------------------------------------------------------- */

typedef struct caller {
  pgee_workspace *w;
  const pgee_batch *batch;
  const pgee_tensor *output;
  const float *expected;
  int runs, wrong;
} caller;

static void *call(void *arg) {
  caller *c = arg;
  for (int i = 0; i < c->runs; i++) {
    pgee_tensor *y;
    if (pgee_workspace_run(c->w, c->batch) != PGEE_OK || pgee_workspace_output(&y, c->w, c->output) != PGEE_OK) {
      c->wrong++;
      continue;
    }
    size_t bytes = (size_t)(pgee_tensor_dim(y, 0) * pgee_tensor_stride(y)) * sizeof(float);
    c->wrong += memcmp(pgee_tensor_data(y), c->expected, bytes) != 0;
    pgee_tensor_free(y);
  }
  return NULL;
}

/* `count` OS threads run each its workspace `runs` times; how many runs failed or gave other bits than expected. */
SHOWN int spec_callers(pgee_workspace **workspaces, int count, const pgee_batch *batch, const pgee_tensor *output,
                       const float *expected, int runs);
int spec_callers(pgee_workspace **workspaces, int count, const pgee_batch *batch, const pgee_tensor *output,
                 const float *expected, int runs) {
  enum { MOST = 8 };
  caller callers[MOST];
  pthread_t threads[MOST];
  int started = 0, wrong = 0;
  for (; started < count && started < MOST; started++) {
    callers[started] = (caller){workspaces[started], batch, output, expected, runs, 0};
    if (pthread_create(&threads[started], NULL, call, &callers[started]) != 0)
      break;
  }
  wrong = count - started;
  for (int i = 0; i < started; i++) {
    pthread_join(threads[i], NULL);
    wrong += callers[i].wrong;
  }
  return wrong;
}

/* An OS thread that runs phases without end, so that others find the team busy or fork in the middle of one: on a single CPU,
 * too, since a phase gives it away for a while. */
static _Atomic int busy_on;
static pthread_t busy_thread;

static void dawdle(void *work, const context *c) {
  int64_t count = 10;
  (void)work;
  wait_only(&count, c);
  usleep(100);
  wait_only(&count, c);
}

static void *keep_busy(void *unused) {
  while (busy_on)
    team_run(dawdle, NULL, 0, NULL, NULL, 0);
  return unused;
}

SHOWN int spec_busy_start(void);
int spec_busy_start(void) {
  busy_on = 1;
  return pthread_create(&busy_thread, NULL, keep_busy, NULL);
}

SHOWN void spec_busy_end(void);
void spec_busy_end(void) {
  busy_on = 0;
  pthread_join(busy_thread, NULL);
}
