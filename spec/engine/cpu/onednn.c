/* onednn.c: oneDNN on packed bytes against sums that know no layout; from several threads; in a forked child. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/perigee.h"
#include "kernels/gemm_u8s8/layout.h"
#include "engine/cpu/onednn.h"

#define PUBLIC __attribute__((visibility("default")))

enum { PAGE = 4096 };
static const uint32_t UNTOUCHED = 0x7fc0dead;

typedef struct block {
  char *base, *data;
  size_t room;
} block;

/* `bytes` that begin at a multiple of 64 and end less than 64 bytes before a page that nobody may touch. */
static block block_new(size_t bytes) {
  size_t room = (bytes + PAGE - 1) / PAGE * PAGE;
  char *base = mmap(NULL, room + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED || mprotect(base + room, PAGE, PROT_NONE))
    abort();
  return (block){base, base + (room - bytes) / 64 * 64, room + PAGE};
}

static void block_free(block b) { munmap(b.base, b.room); }

/* Small whole numbers, so that FP32 sums are exact in every order. */
static int value(int64_t i, int64_t j, int range) { return (int)((i * 7919 + j * 104729 + i * j) % range); }

static int compare(const uint32_t *c, int64_t rows, int64_t K, int64_t N, int f32, char *why, int64_t bytes) {
  for (int64_t t = 0; t < rows; t++)
    for (int64_t n = 0; n < N; n++) {
      int32_t sum = 0;
      for (int64_t k = 0; k < K; k++)
        sum += value(t, k, f32 ? 17 : 256) * (value(n, k, f32 ? 17 : 255) - (f32 ? 8 : 127));
      float real = (float)sum;
      uint32_t want = (uint32_t)sum;
      if (f32)
        memcpy(&want, &real, sizeof want);
      if (c[t * N + n] != want)
        return snprintf(why, (size_t)bytes, "[%d][%d] is 0x%x, expected 0x%x", (int)t, (int)n, c[t * N + n], want), 0;
    }
  return 1;
}

/* onednn_u8s8 or onednn_f32 on rows whose memory ends where it may, weights that cannot be written. */
PUBLIC int spec_onednn(int isa, int f32, int64_t rows, int64_t K, int64_t N, char *why, int64_t bytes) {
  int64_t kblocks = (K + 63) / 64, panels = (N + 63) / 64, k16 = (K + 15) / 16 * 16, lda = f32 ? K : kblocks * 64;
  block a = block_new((size_t)(rows * lda * (f32 ? 4 : 1))), c = block_new((size_t)(rows * N * 4));
  block b = block_new((size_t)(f32 ? panels * k16 * 256 : panels * kblocks * BLOCK_BYTES));
  for (int64_t t = 0; t < rows; t++)
    for (int64_t k = 0; k < lda; k++) {
      if (f32)
        ((float *)a.data)[t * lda + k] = (float)value(t, k, 17);
      else
        a.data[t * lda + k] = (char)(k < K ? value(t, k, 256) : 255);
    }
  for (int64_t n = 0; n < N; n++)
    for (int64_t k = 0; k < K; k++) {
      if (f32)
        ((float *)b.data)[(n / 64 * k16 + k) * 64 + n % 64] = (float)(value(n, k, 17) - 8);
      else
        b.data[packed_index(n, k, kblocks)] = (char)(value(n, k, 255) - 127);
    }
  if (mprotect(b.base, b.room - PAGE, PROT_READ))
    abort();
  uint32_t *out = (uint32_t *)c.data;
  for (int64_t i = 0; i < rows * N; i++)
    out[i] = UNTOUCHED;
  int ok = f32 ? onednn_f32(isa, (float *)c.data, (const float *)a.data, (const float *)b.data, rows, K, N)
               : onednn_u8s8(isa, (int32_t *)c.data, (const uint8_t *)a.data, (const int8_t *)b.data, rows, K, N);
  if (!ok)
    snprintf(why, (size_t)bytes, "it has no kernel for this");
  ok = ok && compare(out, rows, K, N, f32, why, bytes);
  block_free(a);
  block_free(b);
  block_free(c);
  return ok;
}

enum { JOB_ROWS = 8, JOB_COLUMNS = 128, JOB_ROUNDS = 3 };

typedef struct job {
  int isa, first, ok;
} job;

static _Alignas(64) int8_t ones_b[JOB_COLUMNS * 64];
static _Alignas(64) uint8_t ones_a[JOB_ROWS * 64];

/* Ones times ones, in more shapes than are kept, so that entries come and go while others use theirs. */
static void *work(void *p) {
  job *j = p;
  int32_t c[JOB_ROWS * JOB_COLUMNS];
  j->ok = 1;
  for (int i = 0; j->ok && i < JOB_ROUNDS * JOB_ROWS * (JOB_COLUMNS - 64); i++) {
    int shape = (i / 4 * 37 + j->first + i % 4) % (JOB_ROWS * (JOB_COLUMNS - 64)), rows = 1 + shape % JOB_ROWS,
        N = 64 + shape / JOB_ROWS;
    memset(c, 0, sizeof c);
    j->ok = onednn_u8s8(j->isa, c, ones_a, ones_b, rows, 64, N);
    for (int k = 0; j->ok && k < rows * N; k++)
      j->ok = c[k] == 64;
  }
  return NULL;
}

/* 1 if `threads` threads at once all got their sums. */
PUBLIC int spec_onednn_threads(int isa, int threads) {
  pthread_t id[16];
  job jobs[16];
  int ok = 1;
  memset(ones_a, 1, sizeof ones_a);
  memset(ones_b, 1, sizeof ones_b);
  for (int i = 0; i < threads; i++) {
    jobs[i] = (job){.isa = isa, .first = i / 2};
    if (pthread_create(&id[i], NULL, work, &jobs[i]))
      abort();
  }
  for (int i = 0; i < threads; i++) {
    pthread_join(id[i], NULL);
    ok = ok && jobs[i].ok;
  }
  return ok;
}

static void *keep_busy(void *stop) {
  char why[128];
  for (int64_t i = 0; !*(volatile int *)stop; i++)
    spec_onednn(PGEE_AVX512VNNI, 0, 1 + i % 40, 64, 64 + i % 7, why, sizeof why);
  return NULL;
}

/* Forks while another thread creates primitives, several times; each child multiplies. 1 if all did and ended in time. */
PUBLIC int spec_onednn_fork(int isa, int times) {
  volatile int stop = 0;
  int ok = 1;
  pthread_t busy;
  if (pthread_create(&busy, NULL, keep_busy, (void *)&stop))
    abort();
  for (int i = 0; i < times; i++) {
    pid_t child = fork();
    if (child == 0) {
      char why[128];
      alarm(20);
      _exit(spec_onednn(isa, 0, 3, 128, 64, why, sizeof why) && spec_onednn(isa, 0, 5 + i, 128, 64, why, sizeof why) ? 0 : 1);
    }
    int status = -1;
    ok = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0 && ok;
  }
  stop = 1;
  pthread_join(busy, NULL);
  return ok;
}

PUBLIC const char *spec_onednn_missing(int isa) { return onednn_missing(isa); }
PUBLIC const char *spec_onednn_inexact(int isa) { return onednn_inexact(isa); }
PUBLIC const char *spec_onednn_name(int isa, int f32, int64_t rows, int64_t K, int64_t N) {
  return f32 ? onednn_f32_name(isa, rows, K, N) : onednn_u8s8_name(isa, rows, K, N);
}
