/* cpu.c: which instruction sets this CPU and kernel run, and which one is in force.
 *
 * CPUID alone is not enough: the kernel must save the registers over a task switch (XGETBV), and Linux gives AMX's tile
 * registers only to a process that asks for them. The library asks when AMX is about to be used. Each ISA's row below lists what
 * it needs on top of the row before.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/perigee.h"
#include "engine/base/status.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

static const char *const names[PGEE_ISAS] = {
    [PGEE_REF] = "ref", [PGEE_AVX2] = "avx2",           [PGEE_AVXVNNI] = "avxvnni", [PGEE_AVX512VNNI] = "avx512vnni",
    [PGEE_AMX] = "amx", [PGEE_AMX_MODEL] = "amx-model",
};

/* Why each ISA does not run; empty if it does. Written once. */
static char reasons[PGEE_ISAS][160];
static char cpu_name[64] = "unknown CPU";
static pthread_once_t looked = PTHREAD_ONCE_INIT;

/* ---- What the CPU has --------------------------------------------------------------------------------------------- */

#ifdef __x86_64__

typedef struct registers {
  unsigned eax, ebx, ecx, edx;
} registers;

static registers cpuid(unsigned leaf, unsigned sub) {
  registers r = {0, 0, 0, 0};
  if (leaf <= (unsigned)__get_cpuid_max(leaf & 0x80000000u, NULL))
    __cpuid_count(leaf, sub, r.eax, r.ebx, r.ecx, r.edx);
  return r;
}

/* Which register states the kernel saves; 0 if XGETBV is not there. */
static uint64_t saved_states(void) {
  if (!(cpuid(1, 0).ecx >> 27 & 1))
    return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

enum { STATE_YMM = 0x6, STATE_ZMM = 0xe6, STATE_TILES = 0x60000 };

/* One thing that an ISA needs: a bit of a CPUID leaf's register (0 eax, 1 ebx, 2 ecx, 3 edx). */
static const struct need {
  int isa;
  unsigned leaf, sub, reg, bit;
  const char *name;
} needs[] = {
    {PGEE_AVX2, 1, 0, 2, 28, "AVX"},
    {PGEE_AVX2, 1, 0, 2, 12, "FMA"},
    {PGEE_AVX2, 1, 0, 2, 29, "F16C"},
    {PGEE_AVX2, 7, 0, 1, 5, "AVX2"},
    {PGEE_AVXVNNI, 7, 1, 0, 4, "AVX-VNNI"},
    {PGEE_AVX512VNNI, 7, 0, 1, 16, "AVX512F"},
    {PGEE_AVX512VNNI, 7, 0, 1, 30, "AVX512BW"},
    {PGEE_AVX512VNNI, 7, 0, 1, 31, "AVX512VL"},
    {PGEE_AVX512VNNI, 7, 0, 1, 17, "AVX512DQ"},
    {PGEE_AVX512VNNI, 7, 0, 2, 11, "AVX512-VNNI"},
    {PGEE_AMX, 7, 0, 3, 24, "AMX-TILE"},
    {PGEE_AMX, 7, 0, 3, 25, "AMX-INT8"},
};

static const struct {
  uint64_t states;
  const char *name;
  int below; /* an ISA that this one needs too, or -1 */
} isas[PGEE_ISAS] = {
    [PGEE_AVX2] = {STATE_YMM, "YMM", -1},
    [PGEE_AVXVNNI] = {STATE_YMM, "YMM", PGEE_AVX2},
    [PGEE_AVX512VNNI] = {STATE_ZMM, "ZMM", PGEE_AVX2},
    [PGEE_AMX] = {STATE_ZMM | STATE_TILES, "tile", PGEE_AVX512VNNI},
};

static int has(const struct need *n) {
  registers r = cpuid(n->leaf, n->sub);
  const unsigned all[4] = {r.eax, r.ebx, r.ecx, r.edx};
  return all[n->reg] >> n->bit & 1;
}

/* The kernels load 8 tiles of 16 rows of 64 bytes: palette 1 of CPUID leaf 0x1D must offer that. */
static void check_palette(char *why, size_t size) {
  registers p = cpuid(0x1d, 1);
  unsigned tiles = p.ebx >> 16, row_bytes = p.ebx & 0xffff, rows = p.ecx & 0xffff;
  if (cpuid(0x1d, 0).eax < 1 || tiles < 8 || row_bytes < 64 || rows < 16)
    snprintf(why, size, "AMX palette 1 has %u tiles of %u rows of %u bytes, expected 8 of 16 of 64", tiles, rows, row_bytes);
}

/* Linux gives tile registers to a process that asked, for all its threads. From then on it refuses alternate signal stacks that
 * are too small for the tiles, and it refuses the tiles if a thread has such a stack already. Therefore the library asks only
 * when AMX is about to be used. */
static char refused[200]; /* the reason for which Linux refused; empty if Linux did not refuse or was not asked yet */
static atomic_int was_refused;
static pthread_once_t asked = PTHREAD_ONCE_INIT;

static void ask_for_tiles(void) {
  enum { REQUEST = 0x1023, TILE_DATA = 18 }; /* ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA */
  if (syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0)
    return;
  if (errno == ENOSPC)
    snprintf(
        refused, sizeof refused,
        "Linux refused AMX tile registers because a thread's alternate signal stack is too small; expected sigaltstack with at "
        "least %lu bytes, or PERIGEE_ISA=avx512vnni",
        getauxval(AT_MINSIGSTKSZ));
  else
    snprintf(refused, sizeof refused, "Linux refused AMX tile registers: %s", strerror(errno));
  was_refused = 1;
}

static void ask_for(int isa) {
  if (isa == PGEE_AMX)
    pthread_once(&asked, ask_for_tiles);
}

static void look_at(int isa) {
  char *why = reasons[isa];
  size_t size = sizeof reasons[isa];
  if (isas[isa].below >= 0 && reasons[isas[isa].below][0]) {
    memcpy(why, reasons[isas[isa].below], size);
    return;
  }
  for (size_t i = 0; i < sizeof needs / sizeof *needs && !why[0]; i++)
    if (needs[i].isa == isa && !has(&needs[i]))
      snprintf(why, size, "the CPU lacks %s", needs[i].name);
  if (!why[0] && (saved_states() & isas[isa].states) != isas[isa].states)
    snprintf(why, size, "the kernel does not save %s registers", isas[isa].name);
  if (!why[0] && isa == PGEE_AMX)
    check_palette(why, size);
}

static void look_at_name(void) {
  char text[49] = "";
  if ((unsigned)__get_cpuid_max(0x80000000u, NULL) < 0x80000004u)
    return;
  for (unsigned i = 0; i < 3; i++) {
    registers r = cpuid(0x80000002u + i, 0);
    memcpy(text + 16 * i, &r, 16);
  }
  size_t first = strspn(text, " "), last = strlen(text);
  while (last > first && text[last - 1] == ' ')
    text[--last] = 0;
  if (text[first])
    memcpy(cpu_name, text + first, last - first + 1);
}

static void look(void) {
  look_at_name();
  for (int isa = PGEE_AVX2; isa <= PGEE_AMX; isa++)
    look_at(isa);
}

#else

static const char refused[1];
static const int was_refused;
static void ask_for(int isa) { (void)isa; }

static void look(void) {
  for (int isa = PGEE_AVX2; isa <= PGEE_AMX; isa++)
    snprintf(reasons[isa], sizeof reasons[isa], "this is no x86-64 CPU");
}

#endif

/* ---- The ISA in force --------------------------------------------------------------------------------------------- */

const char *pgee_isa_name(int isa) { return isa >= 0 && isa < PGEE_ISAS ? names[isa] : NULL; }

const char *pgee_isa_reason(int isa) {
  if (!pgee_isa_name(isa))
    return "there is no such instruction set";
  pthread_once(&looked, look);
  return isa == PGEE_AMX && was_refused ? refused : reasons[isa];
}

int pgee_isa_runs(int isa) {
  if (pgee_isa_reason(isa)[0])
    return 0;
  ask_for(isa);
  return pgee_isa_reason(isa)[0] == 0;
}

const char *pgee_cpu_name(void) {
  pthread_once(&looked, look);
  return cpu_name;
}

static _Atomic int in_force = -1;

static int best(void) {
  int isa = PGEE_AMX;
  while (!pgee_isa_runs(isa))
    isa--;
  return isa;
}

static int from_environment(const char *name, int *out) {
  for (int isa = 0; isa < PGEE_ISAS; isa++) {
    if (strcmp(name, names[isa]) != 0)
      continue;
    if (!pgee_isa_runs(isa))
      return fail(PGEE_UNSUPPORTED, "PERIGEE_ISA=%s does not run here: %s", name, pgee_isa_reason(isa));
    *out = isa;
    return PGEE_OK;
  }
  return fail(PGEE_ARGUMENT, "PERIGEE_ISA=%s, expected ref, avx2, avxvnni, avx512vnni, amx or amx-model", name);
}

int pgee_isa(int *isa) {
  NEED(isa);
  int now = in_force;
  if (now < 0) {
    const char *name = getenv("PERIGEE_ISA");
    if (name && name[0])
      TRY(from_environment(name, &now));
    else
      now = best();
    int unset = -1;
    if (!atomic_compare_exchange_strong(&in_force, &unset, now))
      now = unset; /* another thread was first, or set one */
  }
  *isa = now;
  return PGEE_OK;
}

int pgee_isa_set(int isa) {
  if (!pgee_isa_name(isa))
    return fail(PGEE_ARGUMENT, "%d is no instruction set", isa);
  if (!pgee_isa_runs(isa))
    return fail(PGEE_UNSUPPORTED, "%s does not run here: %s", names[isa], pgee_isa_reason(isa));
  in_force = isa;
  return PGEE_OK;
}
