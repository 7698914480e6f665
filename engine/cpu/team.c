/* team.c: the library has its own threads instead of OpenMP's, because these work again after fork, cost nothing when idle, and can be
 * checked by ThreadSanitizer.
 *
 * All synchronization uses one type, an event: a counter that threads wait for and another thread increments. A waiting thread spins
 * for some microseconds, then sleeps on a futex. The incrementing thread makes a system call only if a thread sleeps.
 *
 *   phase    thread 0 writes the task and signals the events of threads 1 and 2; these signal threads 3 to 6, and so on
 *   barrier  each thread increments `arrived`; the last one resets it and signals the event that the others wait for
 *   end      a barrier at which only thread 0 waits; the workers go back to waiting for their own events
 *
 * A worker does not touch `team` between its arrival at the end and the next signal of its event, so thread 0 may write to `team` then.
 * A child of fork has no workers: `team` is set to zero there, and workers are started when they are needed.
 */
#include "team.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/status.h"
#include "threads.h"

/* Iterations of spinning before a thread sleeps: 5 to 15 microseconds, about the cost of sleeping and waking. If there are more threads
 * than CPUs, spinning is short, because the awaited thread may need the CPU that spins. */
enum { SPINS = 400, SPINS_CROWDED = 20 };
enum { STACK_BYTES = 1 << 20 };

/* ---- The floating-point environment ------------------------------------------------------------------------------- */

/* The register that holds the rounding mode and the treatment of denormals, and its value at the start of a process. */
#if defined __x86_64__
enum { FLOAT_DEFAULT = 0x1f80 }; /* MXCSR: round to nearest, denormals kept, exceptions masked */
static unsigned read_state(void) { return __builtin_ia32_stmxcsr(); }
static void write_state(unsigned state) { __builtin_ia32_ldmxcsr(state); }
static void relax(void) { __builtin_ia32_pause(); }
#elif defined __aarch64__
enum { FLOAT_DEFAULT = 0 }; /* FPCR */
static unsigned read_state(void) {
  uint64_t state;
  __asm__ volatile("mrs %0, fpcr" : "=r"(state));
  return (unsigned)state;
}
static void write_state(unsigned state) { __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)state)); }
static void relax(void) { __asm__ volatile("yield"); }
#else
enum { FLOAT_DEFAULT = 0 };
static unsigned read_state(void) { return 0; }
static void write_state(unsigned state) { (void)state; }
static void relax(void) {}
#endif

unsigned team_float_default(void) {
  unsigned before = read_state();
  write_state(FLOAT_DEFAULT);
  return before;
}

void team_float_restore(unsigned state) { write_state(state); }

/* ---- Events ------------------------------------------------------------------------------------------------------- */

typedef struct event {
  _Alignas(64) _Atomic uint32_t word;
  _Atomic uint32_t sleepers;
} event;

/* Sleeps if the word is still `old`. */
static void futex_wait(_Atomic uint32_t *word, uint32_t old) { syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0); }

static void futex_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0); }

/* Both sides write first and read afterwards, sequentially consistent. So either the signalling thread sees the sleeper, or the sleeper
 * sees the new count. */
static void event_signal(event *e) {
  atomic_fetch_add(&e->word, 1);
  if (atomic_load(&e->sleepers))
    futex_wake(&e->word);
}

static void event_wait(event *e, uint32_t old, int spins) {
  for (int i = 0; i < spins; i++) {
    if (atomic_load_explicit(&e->word, memory_order_acquire) != old)
      return;
    relax();
  }
  atomic_fetch_add(&e->sleepers, 1);
  while (atomic_load(&e->word) == old)
    futex_wait(&e->word, old);
  atomic_fetch_sub(&e->sleepers, 1);
}

/* ---- The team ----------------------------------------------------------------------------------------------------- */

struct failure {
  _Atomic int claimed;  /* by the thread that writes the rest */
  _Atomic int64_t step; /* INT64_MAX: none */
  int status;
  char text[512];
};

typedef struct task {
  phase *run;
  void *work;
  int threads, spins;
  char *scratch;
  int64_t scratch_bytes;
  context c; /* the same for all threads, but for thread and scratch */
} task;

static struct {
  _Atomic int busy; /* 1 while a phase runs */
  int started;      /* number of workers: threads 1 to `started` */
  int cpus;
  int quit;
  task task;
  _Alignas(64) _Atomic int arrived;
  event turn;                /* of barriers */
  event starts[MAX_THREADS]; /* of each worker: its next phase */
  pthread_t threads[MAX_THREADS];
} team;

static void take_part(const task *t, int thread) {
  context c = t->c;
  c.thread = thread;
  c.threads = t->threads;
  c.shared = t->scratch;
  c.scratch = t->scratch ? t->scratch + thread * t->scratch_bytes : NULL;
  t->run(t->work, &c);
}

static void count_in(int threads, int wait) {
  uint32_t turn = atomic_load_explicit(&team.turn.word, memory_order_relaxed);
  int spins = team.task.spins;
  if (atomic_fetch_add_explicit(&team.arrived, 1, memory_order_acq_rel) + 1 == threads) {
    atomic_store_explicit(&team.arrived, 0, memory_order_relaxed);
    event_signal(&team.turn);
  } else if (wait) {
    event_wait(&team.turn, turn, spins);
  }
}

void team_barrier(const context *c) {
  if (c->threads > 1)
    count_in(c->threads, 1);
}

static void wake_two(int thread) {
  for (int i = 2 * thread + 1; i <= 2 * thread + 2; i++)
    if (i < team.task.threads)
      event_signal(&team.starts[i]);
}

static void *worker(void *arg) {
  int thread = (int)(intptr_t)arg, spins = 0;
  team_float_default();
  for (uint32_t seen = 0;; seen++) {
    event_wait(&team.starts[thread], seen, spins);
    if (team.quit)
      return NULL;
    wake_two(thread);
    take_part(&team.task, thread);
    spins = team.task.spins;
    count_in(team.task.threads, 0);
  }
}

static void forget_workers(void) { memset(&team, 0, sizeof team); }

static int watch_fork_status;
static void watch_fork(void) { watch_fork_status = pthread_atfork(NULL, NULL, forget_workers); }

/* Starts one more worker. All signals are blocked in it, so that the program's handlers run in other threads. Returns an errno. */
static int start_worker(void) {
  pthread_attr_t attr;
  sigset_t all, before;
  int error = pthread_attr_init(&attr);
  if (error)
    return error;
  sigfillset(&all);
  pthread_attr_setstacksize(&attr, STACK_BYTES);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  error = pthread_create(&team.threads[team.started + 1], &attr, worker, (void *)(intptr_t)(team.started + 1));
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attr);
  if (!error)
    team.started++;
  return error;
}

static int start_workers(int threads) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, watch_fork);
  int error = watch_fork_status;
  if (!team.cpus)
    team.cpus = threads_cpus();
  while (!error && team.started < threads - 1)
    error = start_worker();
  return error ? fail(PGEE_SYSTEM, "thread %d of %d could not be started: %s", team.started + 2, threads, strerror(error))
               : PGEE_OK;
}

/* Ends the workers when the library is unloaded, because they run its code. If a phase runs at exit, all threads end with the process. */
__attribute__((destructor)) static void end_workers(void) {
  if (atomic_exchange(&team.busy, 1))
    return;
  team.quit = 1;
  for (int i = 1; i <= team.started; i++)
    event_signal(&team.starts[i]);
  for (int i = 1; i <= team.started; i++)
    pthread_join(team.threads[i], NULL);
  forget_workers();
}

/* ---- Phases ------------------------------------------------------------------------------------------------------- */

static int run_with_team(const task *t) {
  TRY(start_workers(t->threads));
  team.task = *t;
  team.task.spins = t->threads > team.cpus ? SPINS_CROWDED : SPINS;
  wake_two(0);
  take_part(&team.task, 0);
  count_in(t->threads, 1);
  return PGEE_OK;
}

static int run_task(task *t) {
  if (t->threads > 1 && !atomic_exchange(&team.busy, 1)) {
    int status = run_with_team(t);
    atomic_store(&team.busy, 0);
    return status;
  }
  t->threads = 1;
  take_part(t, 0);
  return PGEE_OK;
}

static void describe_batch(context *c, const pgee_batch *batch) {
  c->batch = batch;
  if (!batch)
    return;
  c->T = batch->T;
  c->B = batch->B;
  c->R = batch->R;
  for (int64_t b = 0; b < batch->B; b++)
    if (c->S < batch->starts[b + 1] - batch->starts[b])
      c->S = batch->starts[b + 1] - batch->starts[b];
}

int team_run(phase *f, void *work, int threads, const pgee_batch *batch, char *scratch, int64_t scratch_bytes) {
  failure failed = {.step = INT64_MAX};
  task t = {.run = f, .work = work, .scratch = scratch, .scratch_bytes = scratch_bytes, .c.failed = &failed};
  int isa;
  TRY(pgee_isa(&isa));
  TRY(pgee_threads(&t.threads));
  if (threads > 0 && threads < t.threads)
    t.threads = threads;
  t.c.k = kernels_for(isa);
  describe_batch(&t.c, batch);
  unsigned before = team_float_default();
  int status = run_task(&t);
  team_float_restore(before);
  if (failed.step != INT64_MAX)
    return fail(failed.status, "%s", failed.text);
  return status;
}

void team_fail(const context *c, int status, const char *format, ...) {
  failure *failed = c->failed;
  if (atomic_exchange(&failed->claimed, 1))
    return;
  va_list args;
  va_start(args, format);
  vsnprintf(failed->text, sizeof failed->text, format, args);
  va_end(args);
  failed->status = status;
  failed->step = c->step;
}

int team_failed(const context *c) { return c->failed->step <= c->step; }

void team_share(const context *c, int64_t n, int64_t *first, int64_t *last) {
  *first = n * c->thread / c->threads;
  *last = n * (c->thread + 1) / c->threads;
}

context team_context(const pgee_batch *batch, int thread, int threads) {
  context c = {.thread = thread, .threads = threads};
  describe_batch(&c, batch);
  return c;
}

/* ---- Interrupts and time ------------------------------------------------------------------------------------------ */

static _Atomic int interrupted;

void pgee_interrupt(int on) { interrupted = on; }
int pgee_interrupted(void) { return interrupted; }

double pgee_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
