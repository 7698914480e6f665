/* onednn.c: oneDNN through its C API, by function pointers.
 *
 *   opening    happens once in a process: loads the library, finds its functions, checks its version and ISA, creates an engine
 *   entry      one shape of product: its primitive, or the fact that oneDNN has no fast one. Entries form a list of bounded length,
 *              most recently used first
 *   call       what one execution needs for itself: memory objects, a stream, scratch memory. An entry keeps its idle calls
 *
 * Everything is created and destroyed under `lock`. The lock is taken before the process forks, so a child finds everything whole.
 */
#include "onednn.h"

#include <stddef.h>

#include "engine/base/status.h"
#include "engine/data/packed.h"

#ifndef PGEE_HAVE_ONEDNN

const char *onednn_missing(int isa) { return (void)isa, "this build has no oneDNN: its headers were not found"; }
const char *onednn_version(int isa) { return (void)isa, NULL; }
const char *onednn_inexact(int isa) { return onednn_missing(isa); }
int onednn_u8s8(int isa, int32_t *c, const uint8_t *a, const int8_t *b, int64_t rows, int64_t K, int64_t N) {
  return (void)isa, (void)c, (void)a, (void)b, (void)rows, (void)K, (void)N, 0;
}
int onednn_f32(int isa, float *c, const float *a, const float *b, int64_t rows, int64_t K, int64_t N) {
  return (void)isa, (void)c, (void)a, (void)b, (void)rows, (void)K, (void)N, 0;
}
const char *onednn_u8s8_name(int isa, int64_t rows, int64_t K, int64_t N) {
  return (void)isa, (void)rows, (void)K, (void)N, NULL;
}
const char *onednn_f32_name(int isa, int64_t rows, int64_t K, int64_t N) { return (void)isa, (void)rows, (void)K, (void)N, NULL; }

#else

#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/memory.h"
#include "kernels/isa.h"

/* ---- The library -------------------------------------------------------------------------------------------------- */

/* clang-format off */
#define FUNCTIONS(F)                                                                                                       \
  F(version) F(set_max_cpu_isa) F(get_effective_cpu_isa) F(engine_create) F(stream_create) F(stream_destroy)               \
  F(memory_desc_create_with_tag) F(memory_desc_destroy) F(memory_desc_get_size) F(memory_create) F(memory_destroy)         \
  F(memory_set_data_handle) F(primitive_attr_create) F(primitive_attr_destroy) F(primitive_attr_set_scratchpad_mode)       \
  F(matmul_primitive_desc_create) F(primitive_desc_destroy) F(primitive_desc_query) F(primitive_desc_query_md)             \
  F(primitive_create) F(primitive_destroy) F(primitive_execute)
/* clang-format on */

#define POINTER(f) __typeof__(dnnl_##f) *f;
static struct {
  FUNCTIONS(POINTER)
  void (*omp_set_num_threads)(int);
  int (*omp_get_max_threads)(void);
} api;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int opened; /* 1 as soon as opening was tried */
static char missing[512];  /* why oneDNN cannot be used; empty if it can */
static char inexact[512];  /* why its INT8 sums are not exact; empty if they are */
static char version[32];
static dnnl_engine_t engine;

static void take_lock(void) { pthread_mutex_lock(&lock); }
static void release_lock(void) { pthread_mutex_unlock(&lock); }

static void *open_library(void) {
  const char *given = getenv("PERIGEE_ONEDNN");
  if (given && !strcmp(given, "none"))
    return snprintf(missing, sizeof missing, "PERIGEE_ONEDNN is \"none\""), NULL;
  const char *names[] = {given && *given ? given : PGEE_ONEDNN_PATH, given && *given ? NULL : "libdnnl.so.3"};
  void *library = NULL;
  for (int i = 0; i < 2 && !library && names[i]; i++) {
    library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
      snprintf(missing, sizeof missing, "%s", dlerror());
  }
  if (library)
    *missing = 0;
  return library;
}

static void *find(void *library, const char *name) {
  void *f = dlsym(library, name);
  if (!f && !*missing)
    snprintf(missing, sizeof missing, "oneDNN has no %s", name);
  return f;
}

static int base_of(int isa) {
#define ISA(number, suffix, name, base, ...) \
  case PGEE_##number:                        \
    return PGEE_##base;
  switch (isa) { ALL_ISAS(ISA) }
#undef ISA
  return PGEE_REF;
}

/* The instructions that oneDNN may use if our kernels use `isa`. An ISA that is not in the switch allows what its base allows. */
static dnnl_cpu_isa_t max_isa(int isa) {
  for (;; isa = base_of(isa))
    switch (isa) {
    case PGEE_REF: return dnnl_cpu_isa_sse41;
    case PGEE_AVX2: return dnnl_cpu_isa_avx2;
    case PGEE_AVXVNNI: return dnnl_cpu_isa_avx2_vnni;
    case PGEE_AVX512VNNI: return dnnl_cpu_isa_avx512_core_bf16;
    case PGEE_AMX:
    case PGEE_AMX_MODEL: return dnnl_cpu_isa_default;
    }
}

static int includes(dnnl_cpu_isa_t isa, dnnl_cpu_isa_t part) { return ((unsigned)isa & (unsigned)part) == (unsigned)part; }

/* Makes oneDNN run on the calling thread alone. That is possible if it was built without threads or for OpenMP. */
static void open_threads(void *library, unsigned runtime) {
  if (runtime == DNNL_RUNTIME_SEQ)
    return;
  if (runtime != DNNL_RUNTIME_OMP) {
    snprintf(missing, sizeof missing, "oneDNN was built for threads other than OpenMP's");
    return;
  }
  *(void **)&api.omp_set_num_threads = find(library, "omp_set_num_threads");
  *(void **)&api.omp_get_max_threads = find(library, "omp_get_max_threads");
}

static void open_once(int isa) {
  pthread_atfork(take_lock, release_lock, release_lock);
  void *library = open_library();
  if (!library)
    return;
#define FIND(f) *(void **)&api.f = find(library, "dnnl_" #f);
  FUNCTIONS(FIND)
  if (*missing)
    return;
  const dnnl_version_t *v = api.version();
  snprintf(version, sizeof version, "%d.%d.%d", v->major, v->minor, v->patch);
  if (v->major != 3)
    snprintf(missing, sizeof missing, "oneDNN is version %s, expected 3", version);
  else
    open_threads(library, v->cpu_runtime);
  if (*missing)
    return;
  /* This fails if the process used oneDNN before us. Then oneDNN keeps its own choice, which is checked below. */
  api.set_max_cpu_isa(max_isa(isa));
  if (api.engine_create(&engine, dnnl_cpu, 0) != dnnl_success)
    snprintf(missing, sizeof missing, "oneDNN has no engine for this CPU");
  dnnl_cpu_isa_t effective = api.get_effective_cpu_isa();
  if (!includes(effective, dnnl_cpu_isa_avx512_core_vnni) && !includes(effective, dnnl_cpu_isa_avx2_vnni))
    snprintf(inexact, sizeof inexact, "oneDNN uses no VNNI here (its ISA is 0x%x), and saturates without", (unsigned)effective);
}

/* ---- Primitives --------------------------------------------------------------------------------------------------- */

enum { U8S8 = 0, F32 = 1 };
enum { MAX_ENTRIES = 256 }; /* 50 to 125 KB each */
enum { MAX_ROWS = 64 };     /* of one execution: more rows are not faster, and a bound keeps the number of shapes small */

typedef struct shape {
  int64_t kind, rows, K, N; /* K: the row length of a, in elements */
} shape;

typedef struct call {
  dnnl_memory_t memory[4]; /* a, b, c, scratch */
  dnnl_stream_t stream;
  void *scratch;
  struct call *next;
} call;

typedef struct entry {
  shape shape;
  dnnl_primitive_t primitive; /* NULL: oneDNN has no fast one */
  dnnl_memory_desc_t desc[4]; /* a, b, c, scratch */
  char name[64];
  int busy; /* calls in flight */
  call *idle;
  struct entry *next;
} entry;

static entry *entries; /* most recently used first */

static void call_free(call *c) {
  for (int i = 0; i < 4; i++)
    api.memory_destroy(c->memory[i]);
  api.stream_destroy(c->stream);
  mem_free(c->scratch);
  mem_free(c);
}

static void entry_free(entry *e) {
  for (call *c = e->idle, *next; c; c = next) {
    next = c->next;
    call_free(c);
  }
  for (int i = 0; i < 4; i++)
    api.memory_desc_destroy(e->desc[i]);
  api.primitive_destroy(e->primitive);
  mem_free(e);
}

static call *call_new(const entry *e) {
  call *c = mem_cache(sizeof *c);
  if (!c)
    return NULL;
  int64_t bytes = (int64_t)api.memory_desc_get_size(e->desc[3]);
  c->scratch = bytes ? mem_cache(bytes) : NULL;
  int ok = (!bytes || c->scratch) && api.stream_create(&c->stream, engine, dnnl_stream_default_flags) == dnnl_success;
  for (int i = 0; i < 4; i++)
    ok = ok && api.memory_create(&c->memory[i], e->desc[i], engine, i == 3 ? c->scratch : NULL) == dnnl_success;
  if (!ok) {
    call_free(c);
    return NULL;
  }
  return c;
}

static int describe(entry *e) {
  const shape *s = &e->shape;
  int f32 = s->kind == F32;
  dnnl_dims_t a = {s->rows, s->K}, b = {s->K, s->N}, c = {s->rows, s->N};
  dnnl_format_tag_t panels = f32 ? dnnl_BA16a64b : dnnl_BA16a64b4a;
  return api.memory_desc_create_with_tag(&e->desc[0], 2, a, f32 ? dnnl_f32 : dnnl_u8, dnnl_ab) == dnnl_success &&
         api.memory_desc_create_with_tag(&e->desc[1], 2, b, f32 ? dnnl_f32 : dnnl_s8, panels) == dnnl_success &&
         api.memory_desc_create_with_tag(&e->desc[2], 2, c, f32 ? dnnl_f32 : dnnl_s32, dnnl_ab) == dnnl_success;
}

/* Creates the primitive of e->shape. It stays NULL if oneDNN has only a reference implementation, which is slow. */
static void build(entry *e) {
  dnnl_primitive_attr_t attr = NULL;
  dnnl_primitive_desc_t pd = NULL;
  const char *name = "";
  if (describe(e) && api.primitive_attr_create(&attr) == dnnl_success &&
      api.primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user) == dnnl_success &&
      api.matmul_primitive_desc_create(&pd, engine, e->desc[0], e->desc[1], NULL, e->desc[2], attr) == dnnl_success &&
      api.primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name) == dnnl_success && !strstr(name, "ref")) {
    dnnl_dims_t bytes = {(int64_t)api.memory_desc_get_size(api.primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0))};
    snprintf(e->name, sizeof e->name, "%s", name);
    if (api.memory_desc_create_with_tag(&e->desc[3], 1, bytes, dnnl_u8, dnnl_a) != dnnl_success ||
        api.primitive_create(&e->primitive, pd) != dnnl_success)
      e->primitive = NULL;
  }
  api.primitive_desc_destroy(pd);
  api.primitive_attr_destroy(attr);
}

/* Frees the least recently used entries until MAX_ENTRIES are left. Entries in use stay. */
static void shrink(void) {
  int n = 0;
  for (entry **at = &entries; *at;) {
    entry *e = *at;
    if (++n > MAX_ENTRIES && !e->busy) {
      *at = e->next;
      entry_free(e);
    } else {
      at = &e->next;
    }
  }
}

/* The entry of a shape, which becomes the first of the list. NULL if there is no memory. */
static entry *look_up(const shape *s) {
  entry **at = &entries;
  while (*at && memcmp(&(*at)->shape, s, sizeof *s))
    at = &(*at)->next;
  entry *e = *at;
  if (e) {
    *at = e->next;
  } else {
    e = mem_cache(sizeof *e);
    if (!e)
      return NULL;
    e->shape = *s;
    build(e);
  }
  e->next = entries;
  entries = e;
  return e;
}

/* ---- Execution ---------------------------------------------------------------------------------------------------- */

/* Sets OpenMP's number of threads to one and returns what it was, for threads_again. */
static int one_thread(void) {
  int before = api.omp_get_max_threads ? api.omp_get_max_threads() : 1;
  if (before != 1)
    api.omp_set_num_threads(1);
  return before;
}

static void threads_again(int before) {
  if (before != 1)
    api.omp_set_num_threads(before);
}

/* Takes a call of the shape's entry; NULL if there is no primitive or no memory. `end` gives the call back. */
static entry *begin(const shape *s, call **c) {
  take_lock();
  entry *e = look_up(s);
  *c = NULL;
  if (e && e->primitive) {
    *c = e->idle ? e->idle : call_new(e);
    if (*c) {
      e->idle = (*c)->next;
      e->busy++;
    }
  }
  shrink();
  release_lock();
  return *c ? e : NULL;
}

static void end(entry *e, call *c) {
  take_lock();
  c->next = e->idle;
  e->idle = c;
  e->busy--;
  release_lock();
}

static int execute(const shape *s, void *c, const void *a, const void *b) {
  call *k;
  entry *e = begin(s, &k);
  if (!e)
    return 0;
  /* oneDNN does not write to its sources. */
  int ok = api.memory_set_data_handle(k->memory[0], (void *)(uintptr_t)a) == dnnl_success &&
           api.memory_set_data_handle(k->memory[1], (void *)(uintptr_t)b) == dnnl_success &&
           api.memory_set_data_handle(k->memory[2], c) == dnnl_success;
  dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, k->memory[0]},
                            {DNNL_ARG_WEIGHTS, k->memory[1]},
                            {DNNL_ARG_DST, k->memory[2]},
                            {DNNL_ARG_SCRATCHPAD, k->memory[3]}};
  ok = ok && api.primitive_execute(e->primitive, k->stream, 4, args) == dnnl_success;
  end(e, k);
  return ok;
}

/* Multiplies in parts of at most MAX_ROWS rows. The sizes of the parts differ by at most one, so there are at most two shapes. */
static int multiply(shape s, void *c, const void *a, const void *b) {
  int64_t rows = s.rows, parts = (rows + MAX_ROWS - 1) / MAX_ROWS, a_bytes = s.kind == F32 ? 4 : 1;
  int before = one_thread(), ok = 1;
  for (int64_t i = 0; ok && i < parts; i++) {
    int64_t first = rows * i / parts;
    s.rows = rows * (i + 1) / parts - first;
    ok = execute(&s, (char *)c + first * s.N * 4, (const char *)a + first * s.K * a_bytes, b);
  }
  threads_again(before);
  return ok;
}

static shape u8s8(int64_t rows, int64_t K, int64_t N) { return (shape){U8S8, rows, (K + 63) / 64 * 64, N}; }

/* ---- What can be used --------------------------------------------------------------------------------------------- */

/* 1 if oneDNN gives the exact sums of 4096 products 255 * 127 and of 4096 products 255 * -127, which instructions that saturate get
 * wrong. */
static int probe(void) {
  enum { ROWS = 5, K = 4096, N = 64 };
  uint8_t *a = mem_new(ROWS * K);
  int8_t *b = mem_new(K * N);
  int32_t *c = mem_new(ROWS * N * 4);
  int ok = a && b && c;
  for (int sign = -1; ok && sign <= 1; sign += 2) {
    memset(a, 255, ROWS * K);
    memset(b, 127 * sign, K * N);
    ok = multiply(u8s8(ROWS, K, N), c, a, b);
    for (int i = 0; ok && i < ROWS * N; i++)
      ok = c[i] == 255 * 127 * K * sign;
  }
  mem_free(a);
  mem_free(b);
  mem_free(c);
  return ok;
}

const char *onednn_missing(int isa) {
  if (!opened) {
    take_lock();
    if (!opened)
      open_once(isa);
    opened = 1;
    release_lock();
  }
  return *missing ? missing : NULL;
}

const char *onednn_version(int isa) { return onednn_missing(isa) ? NULL : version; }

static pthread_once_t probed = PTHREAD_ONCE_INIT;
static void probe_once(void) {
  if (!*inexact && !probe())
    snprintf(inexact, sizeof inexact,
             "oneDNN's sums of extremes (255 times 127, 4096 deep) are not exact, or it has no kernel for them");
}

const char *onednn_inexact(int isa) {
  const char *why = onednn_missing(isa);
  if (why)
    return why;
  if (isa < PGEE_AVXVNNI)
    return "the ISA in force has no VNNI";
  pthread_once(&probed, probe_once);
  return *inexact ? inexact : NULL;
}

int onednn_u8s8(int isa, int32_t *c, const uint8_t *a, const int8_t *b, int64_t rows, int64_t K, int64_t N) {
  return !onednn_inexact(isa) && multiply(u8s8(rows, K, N), c, a, b);
}

int onednn_f32(int isa, float *c, const float *a, const float *b, int64_t rows, int64_t K, int64_t N) {
  return !onednn_missing(isa) && multiply((shape){F32, rows, K, N}, c, a, b);
}

static const char *name_of(shape s) {
  int before = one_thread();
  s.rows = s.rows < MAX_ROWS ? s.rows : MAX_ROWS;
  take_lock();
  entry *e = look_up(&s);
  static _Thread_local char name[64];
  const char *found = e && e->primitive ? strcpy(name, e->name) : NULL;
  release_lock();
  threads_again(before);
  return found;
}

const char *onednn_u8s8_name(int isa, int64_t rows, int64_t K, int64_t N) {
  return onednn_inexact(isa) ? NULL : name_of(u8s8(rows, K, N));
}

const char *onednn_f32_name(int isa, int64_t rows, int64_t K, int64_t N) {
  return onednn_missing(isa) ? NULL : name_of((shape){F32, rows, K, N});
}

#endif

/* ---- perigee.h ----------------------------------------------------------------------------------------------------- */

const char *pgee_onednn_version(void) {
  int isa;
  if (pgee_isa(&isa) != PGEE_OK)
    return NULL;
  const char *why = onednn_missing(isa);
  if (why)
    fail(PGEE_UNSUPPORTED, "%s", why);
  return why ? NULL : onednn_version(isa);
}

int pgee_onednn_check(const pgee_packed *w) {
  NEED(w);
  int isa;
  TRY(pgee_isa(&isa));
  if (w->dtype != PGEE_S8)
    return fail(PGEE_UNSUPPORTED, "oneDNN sums FP32 in another order than our kernels");
  const char *why = onednn_inexact(isa);
  if (why)
    return fail(PGEE_UNSUPPORTED, "%s", why);
  if (!onednn_u8s8_name(isa, 64, w->K, w->N))
    return fail(PGEE_UNSUPPORTED, "oneDNN has no optimized kernel for K %lld, N %lld", (long long)w->K, (long long)w->N);
  return PGEE_OK;
}
