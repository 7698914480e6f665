/* amx_model.c: the model of AMX's tile instructions, and the AMX kernel on it. */
#include "amx_model.h"

#include <string.h>

#include "kernels/gemm_bf16/arithmetic.h"
#include "layout.h"

enum { TILES = 8, MAX_ROWS = 16, MAX_BYTES = 64 }; /* palette 1 */

typedef struct registers {
  int configured;
  struct {
    int rows, bytes;
    uint8_t data[MAX_ROWS][MAX_BYTES]; /* zero past rows and bytes */
  } tile[TILES];
} registers;

static _Thread_local registers state;
static _Thread_local const char *fault;
static _Thread_local model_counts counts;

static int raise(const char *why) {
  if (!fault)
    fault = why;
  return 0;
}

const char *model_fault(void) {
  const char *why = fault;
  fault = NULL;
  return why;
}

void model_count_from_zero(void) { counts = (model_counts){0}; }
model_counts model_counted(void) { return counts; }
int model_configured(void) { return state.configured; }

static int all_zero(const uint8_t *x, int n) {
  while (n > 0 && !*x)
    x++, n--;
  return n == 0;
}

static void clear(void) { memset(&state, 0, sizeof state); }

void model_release(void) {
  counts.releases++;
  clear();
}

/*  0 palette | 1 start row | 2-15 zero | 16-31 bytes of a row, 8 x u16 | 32-47 zero | 48-55 rows, 8 x u8 | 56-63 zero */
void model_config(const void *configuration) {
  counts.configurations++;
  const uint8_t *x = configuration;
  registers next = {.configured = 1};
  int valid = x[0] <= 1 && (x[0] == 0 || (all_zero(x + 1, 15) && all_zero(x + 32, 16) && all_zero(x + 56, 8)));
  for (int t = 0; x[0] && t < TILES; t++) {
    int bytes = x[16 + 2 * t] | x[17 + 2 * t] << 8, rows = x[48 + t];
    valid = valid && bytes <= MAX_BYTES && rows <= MAX_ROWS && !bytes == !rows;
    next.tile[t].bytes = bytes;
    next.tile[t].rows = rows;
  }
  if (!valid)
    raise("#GP: ldtilecfg of an invalid configuration");
  else if (!x[0])
    clear();
  else
    state = next;
}

static int usable(int t) {
  if (!state.configured)
    return raise("#UD: tiles are not configured");
  if (t < 0 || t >= TILES || !state.tile[t].rows)
    return raise("#UD: a tile that the configuration leaves out");
  return 1;
}

void model_zero(int t) {
  counts.zeros++;
  if (usable(t))
    memset(state.tile[t].data, 0, sizeof state.tile[t].data);
}

void model_load(int t, const void *base, int64_t stride) {
  counts.loads++;
  if (!usable(t))
    return;
  memset(state.tile[t].data, 0, sizeof state.tile[t].data);
  for (int i = 0; i < state.tile[t].rows; i++)
    memcpy(state.tile[t].data[i], (const char *)base + i * stride, (size_t)state.tile[t].bytes);
}

void model_store(int t, void *base, int64_t stride) {
  counts.stores++;
  if (!usable(t))
    return;
  for (int i = 0; i < state.tile[t].rows; i++)
    memcpy((char *)base + i * stride, state.tile[t].data[i], (size_t)state.tile[t].bytes);
}

/* Rows, columns and depth must fit, in whole 4-byte elements, and the three tiles differ. */
static int fit(int c, int a, int b) {
  if (!usable(c) || !usable(a) || !usable(b))
    return 0;
  int whole = state.tile[c].bytes % 4 == 0 && state.tile[a].bytes % 4 == 0 && state.tile[b].bytes % 4 == 0;
  int fits = state.tile[c].rows == state.tile[a].rows && state.tile[c].bytes == state.tile[b].bytes &&
             state.tile[a].bytes / 4 == state.tile[b].rows;
  if (!whole || !fits || c == a || c == b || a == b)
    return raise("#UD: a product of tiles that do not fit");
  return 1;
}

/* a's bytes are signed if is_signed. */
static void dot(int c, int a, int b, int is_signed) {
  counts.products++;
  if (!fit(c, a, b))
    return;
  int rows = state.tile[c].rows, depth = state.tile[a].bytes, columns = state.tile[c].bytes / 4;
  for (int i = 0; i < rows; i++) {
    uint32_t sum[MAX_BYTES / 4]; /* unsigned: the instruction wraps */
    memcpy(sum, state.tile[c].data[i], sizeof sum);
    for (int k = 0; k < depth; k++) {
      int x = is_signed ? (int8_t)state.tile[a].data[i][k] : state.tile[a].data[i][k];
      const int8_t *y = (const int8_t *)state.tile[b].data[k / 4] + k % 4;
      for (int n = 0; n < columns; n++)
        sum[n] += (uint32_t)(x * y[4 * n]);
    }
    memcpy(state.tile[c].data[i], sum, (size_t)columns * 4);
  }
}

/* Each sum has two chains of fma in each product, one for the first and one for the second inputs of the pairs. */
void model_dpbf16ps(int c, int a, int b) {
  counts.products++;
  if (!fit(c, a, b))
    return;
  int rows = state.tile[c].rows, pairs = state.tile[a].bytes / 4, columns = state.tile[c].bytes / 4;
  for (int i = 0; i < rows; i++)
    for (int n = 0; n < columns; n++) {
      float chains[2] = {0, 0}, sum;
      for (int k = 0; k < pairs; k++)
        for (int half = 0; half < 2; half++) {
          uint16_t x, y;
          memcpy(&x, state.tile[a].data[i] + 4 * k + 2 * half, sizeof x);
          memcpy(&y, state.tile[b].data[k] + 4 * n + 2 * half, sizeof y);
          chains[half] = bf16_fma(x, y, chains[half]);
        }
      memcpy(&sum, state.tile[c].data[i] + 4 * n, sizeof sum);
      sum = bf16_add(sum, bf16_add(chains[0], chains[1]));
      memcpy(state.tile[c].data[i] + 4 * n, &sum, sizeof sum);
    }
}

void model_dpbusd(int c, int a, int b) { dot(c, a, b, 0); }
void model_dpbssd(int c, int a, int b) { dot(c, a, b, 1); }

#define AMX_MODEL
#define NAME(f) f##_amx_model
#define EPILOGUE epilogue_s32_ref
#include "kernels/rows/v16_ref.h"

#include "kernels/rows/functions.h"

#include "amx_body.h"
