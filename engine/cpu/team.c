/* team.c: our own threads, rather than OpenMP's: they survive fork, cost nothing when idle, and ThreadSanitizer
 * understands them.
 *
 * Everything rests on one thing, a gate: a counter that some wait at and another moves on. Who waits spins for a moment,
 * then sleeps on a futex; who opens makes a system call only if somebody sleeps.
 *
 *   phase   thread 0 writes down what to do and opens the gates of threads 1 and 2, they those of 3 to 6, and so on
 *   barrier all count themselves in; the last one sets the count back and opens the gate at which the others wait
 *   end     a barrier at which only thread 0 waits; the others go back to their own gates
 *
 * A worker of the team touches nothing of it between counting itself in at the end and its gate's next opening, so thread
 * 0 may then write. In a child of fork there are no workers: the state is set to zero there and they are started when next
 * needed.
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

/* Turns of a spin before sleeping: 5 to 15 microseconds, about what it costs to sleep and be woken. With more threads than
 * CPUs, who is waited for may need the very CPU that spins. */
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

unsigned float_default(void) {
  unsigned before = read_state();
  write_state(FLOAT_DEFAULT);
  return before;
}

void float_restore(unsigned state) { write_state(state); }

/* ---- Gates -------------------------------------------------------------------------------------------------------- */

typedef struct gate {
  _Alignas(64) _Atomic uint32_t word;
  _Atomic uint32_t sleepers;
} gate;

/* Sleeps unless the word has moved on already. */
static void futex_wait(_Atomic uint32_t *word, uint32_t old) { syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0); }

static void futex_wake(_Atomic uint32_t *word) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0); }

/* Both sides write first and read then, in one order that all agree on: either the opener sees the sleeper, or the sleeper the
 * opening. */
static void gate_open(gate *g) {
  atomic_fetch_add(&g->word, 1);
  if (atomic_load(&g->sleepers))
    futex_wake(&g->word);
}

static void gate_wait(gate *g, uint32_t old, int spins) {
  for (int i = 0; i < spins; i++) {
    if (atomic_load_explicit(&g->word, memory_order_acquire) != old)
      return;
    relax();
  }
  atomic_fetch_add(&g->sleepers, 1);
  while (atomic_load(&g->word) == old)
    futex_wait(&g->word, old);
  atomic_fetch_sub(&g->sleepers, 1);
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
  context c; /* what all threads have in common */
} task;

static struct {
  _Atomic int busy; /* a phase is on */
  int started;      /* workers: threads 1 to started */
  int cpus;
  int quit;
  task task;
  _Alignas(64) _Atomic int arrived;
  gate turn;               /* of barriers */
  gate gates[MAX_THREADS]; /* of each worker */
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
    gate_open(&team.turn);
  } else if (wait) {
    gate_wait(&team.turn, turn, spins);
  }
}

void team_barrier(const context *c) {
  if (c->threads > 1)
    count_in(c->threads, 1);
}

static void wake_two(int thread) {
  for (int i = 2 * thread + 1; i <= 2 * thread + 2; i++)
    if (i < team.task.threads)
      gate_open(&team.gates[i]);
}

static void *worker(void *arg) {
  int thread = (int)(intptr_t)arg, spins = 0;
  float_default();
  for (uint32_t seen = 0;; seen++) {
    gate_wait(&team.gates[thread], seen, spins);
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

/* One more worker, which no signal of the program's will interrupt. Returns an errno. */
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

/* When the library is unloaded, its code must not be under anybody's feet. At exit while a phase is on, all end with the
 * process. */
__attribute__((destructor)) static void end_workers(void) {
  if (atomic_exchange(&team.busy, 1))
    return;
  team.quit = 1;
  for (int i = 1; i <= team.started; i++)
    gate_open(&team.gates[i]);
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
  unsigned before = float_default();
  int status = run_task(&t);
  float_restore(before);
  if (failed.step != INT64_MAX)
    return fail(failed.status, "%s", failed.text);
  return status;
}

void phase_fail(const context *c, int status, const char *format, ...) {
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

int phase_failed(const context *c) { return c->failed->step <= c->step; }

void share(const context *c, int64_t n, int64_t *first, int64_t *last) {
  *first = n * c->thread / c->threads;
  *last = n * (c->thread + 1) / c->threads;
}

context context_of(const pgee_batch *batch, int thread, int threads) {
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
