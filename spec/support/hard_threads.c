/* hard_threads.c: what threads can do to each other, for ThreadSanitizer (make tsan) and the others (make hard).
 *
 * One plan with every kind of step, run alone first; then by two OS threads at once, each in its own workspace, with teams of
 * several sizes, under interrupts, and in children of forks. Every run must give the first one's bits. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/perigee.h"

enum { WORDS = 50, H = 64, I = 96, HEADS = 4, T = 40, B = 4, S = 16, RUNS = 100 };

static void ok(int status, const char *call) {
  if (status != PGEE_OK) {
    fprintf(stderr, "%s: status %d: %s\n", call, status, pgee_message());
    _exit(1);
  }
}
#define OK(call) ok(call, #call)

static uint32_t seed = 1;
static pgee_tensor *values(int ndim, int64_t rows, int64_t columns) {
  pgee_tensor *t;
  OK(pgee_tensor_new(&t, PGEE_F32, ndim, (int64_t[]){rows, columns}));
  float *x = pgee_tensor_data(t);
  for (int64_t i = 0; i < rows * columns; i++) {
    seed = seed * 1664525u + 1013904223u;
    x[i] = (float)(int32_t)seed * 0x1p-31f;
  }
  return t;
}
static pgee_tensor *vector(int64_t n) { return values(1, n, 1); }
static pgee_tensor *matrix(int64_t rows, int64_t columns) { return values(2, rows, columns); }

static pgee_plan *plan;
static pgee_tensor *pooled; /* the plan's output, [B][H] */

static pgee_tensor *buffer(int dtype, int rows, int64_t width) {
  pgee_tensor *t;
  OK(pgee_plan_buffer(plan, &t, dtype, rows, width));
  return t;
}

static pgee_packed *packed(int (*pack)(pgee_packed **, const pgee_tensor *const *, int), int count, int64_t N, int64_t K) {
  const pgee_tensor *weights[3];
  for (int i = 0; i < count; i++)
    weights[i] = matrix(N, K);
  pgee_packed *w;
  OK(pack(&w, weights, count));
  for (int i = 0; i < count; i++)
    pgee_tensor_free((pgee_tensor *)weights[i]);
  return w;
}
static int pack_s8(pgee_packed **w, const pgee_tensor *const *weights, int count) {
  return pgee_packed_s8(w, weights, count, NULL, PGEE_PER_ROW);
}

/* The constants are leaked here on purpose: the plan holds them, and the process ends. */
static void build(void) {
  OK(pgee_plan_new(&plan));
  const pgee_tensor *gamma = vector(H), *beta = vector(H);
  pgee_tensor *x = buffer(PGEE_F32, PGEE_TOKENS, H), *q = buffer(PGEE_U8, PGEE_TOKENS, H), *y = buffer(PGEE_F32, PGEE_TOKENS, H);
  OK(pgee_plan_push(plan, PGEE_EMBED, &(pgee_embed_args){.word = matrix(WORDS, H), .position = matrix(S, H), .y = x}));

  pgee_tensor *m;
  OK(pgee_tensor_new(&m, PGEE_F32, 1, (int64_t[]){H}));
  OK(pgee_quantize_multiplier(m, 1 / 64.f, NULL));
  pgee_quantizer to_q = {.mode = PGEE_STATIC, .m = m, .zero = 128, .q = q};
  OK(pgee_plan_push(plan, PGEE_QUANTIZE, &(pgee_quantize_args){.x = x, .quantize = to_q}));

  pgee_packed *w = packed(pack_s8, 3, H, H);
  pgee_tensor *qkv = buffer(PGEE_F32, PGEE_TOKENS, 3 * H), *scale;
  OK(pgee_packed_multiplier(&scale, w, 1 / 64.f));
  OK(pgee_plan_push(plan, PGEE_LINEAR, &(pgee_linear_args){.x = q, .w = w, .scale = scale, .zero = 128, .y = qkv}));
  OK(pgee_plan_push(plan, PGEE_ATTENTION, &(pgee_attention_args){.qkv = qkv, .heads = HEADS, .scale = 0.25f, .y = y}));
  OK(pgee_plan_push(plan, PGEE_NORM,
                    &(pgee_norm_args){.x = y, .residual = x, .gamma = gamma, .beta = beta, .eps = 1e-12f, .y = y}));

  pgee_packed *up = packed(pgee_packed_f32, 1, I, H), *down = packed(pack_s8, 1, H, I);
  pgee_tensor *wide = buffer(PGEE_F32, PGEE_TOKENS, I), *wide_q = buffer(PGEE_U8, PGEE_TOKENS, I);
  pgee_tensor *row_scale = buffer(PGEE_F32, PGEE_TOKENS, 0), *row_zero = buffer(PGEE_S32, PGEE_TOKENS, 0), *scales;
  OK(pgee_plan_push(plan, PGEE_LINEAR, &(pgee_linear_args){.x = y, .w = up, .activation = PGEE_GELU, .y = wide}));
  pgee_quantizer by_sequence = {.mode = PGEE_DYNAMIC_SEQUENCE, .q = wide_q, .row_scale = row_scale, .row_zero = row_zero};
  OK(pgee_plan_push(plan, PGEE_QUANTIZE, &(pgee_quantize_args){.x = wide, .quantize = by_sequence}));
  OK(pgee_packed_read(down, &scales, NULL, NULL));
  OK(pgee_plan_push(
      plan, PGEE_LINEAR,
      &(pgee_linear_args){
          .x = wide_q, .w = down, .scale = scales, .row_scale = row_scale, .row_zero = row_zero, .residual = y, .y = x}));

  pooled = buffer(PGEE_F32, PGEE_SEQUENCES, H);
  OK(pgee_plan_push(plan, PGEE_POOL, &(pgee_pool_args){.x = x, .mode = PGEE_POOL_MEAN, .y = pooled}));
  OK(pgee_plan_seal(plan, (const pgee_tensor *[]){pooled}, 1));
}

static int32_t ids[T];
static const int32_t starts[B + 1] = {0, 1, 14, 24, T};
static const pgee_batch batch = {.T = T, .B = B, .ids = ids, .starts = starts};

static float expected[B * H];

/* Runs the plan until it is not interrupted; the result must be the expected one. */
static void run(pgee_workspace *w) {
  int status;
  do
    status = pgee_workspace_run(w, &batch);
  while (status == PGEE_INTERRUPTED);
  ok(status, "pgee_workspace_run");
  pgee_tensor *y;
  OK(pgee_workspace_output(&y, w, pooled));
  if (memcmp(pgee_tensor_data(y), expected, sizeof expected) != 0) {
    fprintf(stderr, "a run gave other bits than the first\n");
    _exit(1);
  }
  pgee_tensor_free(y);
}

static void *runs(void *unused) {
  pgee_workspace *w;
  OK(pgee_workspace_new(&w, plan, T, B, S, 0));
  for (int i = 0; i < RUNS; i++)
    run(w);
  pgee_workspace_free(w);
  return unused;
}

static void two_at_once(void) {
  pthread_t a, b;
  if (pthread_create(&a, NULL, runs, NULL) || pthread_create(&b, NULL, runs, NULL))
    ok(PGEE_SYSTEM, "pthread_create");
  for (int i = 0; i < 20; i++) {
    pgee_interrupt(1);
    usleep(100);
    pgee_interrupt(0);
    usleep(1000);
  }
  pthread_join(a, NULL);
  pthread_join(b, NULL);
}

/* A fork, also while another thread is in the middle of a run: the child has a team of its own. */
__attribute__((unused)) static void runs_in_child(void) {
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    runs(NULL);
    two_at_once();
    _exit(0);
  }
  runs(NULL);
  int status;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
    fprintf(stderr, "the child of a fork failed\n");
    _exit(1);
  }
}

static void forks(void) {
#ifndef __SANITIZE_THREAD__ /* which takes the threads of a child for those of its parent */
  pthread_t other;
  runs_in_child();
  if (pthread_create(&other, NULL, runs, NULL))
    ok(PGEE_SYSTEM, "pthread_create");
  for (int i = 0; i < 4; i++)
    runs_in_child();
  pthread_join(other, NULL);
  runs(NULL);
#endif
}

int main(void) {
  for (int i = 0; i < T; i++)
    ids[i] = i * 7 % WORDS;
  build();
  OK(pgee_threads_set(1));
  pgee_workspace *w;
  OK(pgee_workspace_new(&w, plan, T, B, S, 0));
  OK(pgee_workspace_run(w, &batch));
  pgee_tensor *y;
  OK(pgee_workspace_output(&y, w, pooled));
  memcpy(expected, pgee_tensor_data(y), sizeof expected);
  pgee_tensor_free(y);
  pgee_workspace_free(w);

  for (int threads = 1; threads <= 7; threads += 2) {
    OK(pgee_threads_set(threads));
    runs(NULL);
    two_at_once();
  }

  forks();
  puts("threads, interrupts, forks: equal bits");
  return 0;
}
