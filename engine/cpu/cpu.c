/* cpu.c: which instruction sets (ISAs) this CPU and operating system run, and which ISA is in force.
 *
 * A CPUID bit alone is not enough. The operating system must also save the registers over a task switch (XGETBV tells), and Linux
 * gives AMX's tile registers only to a process that asks for them. The library asks when AMX is about to be used.
 * kernels/isa.h lists what each ISA needs.
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
#include "kernels/isa.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

static const struct isa {
  const char *name;
  int base; /* an ISA whose requirements this one has, too */
  int automatic;
} isas[PGEE_ISAS] = {
#define ISA(number, suffix, name, base, registers, automatic, flags) [PGEE_##number] = {name, PGEE_##base, automatic},
    ALL_ISAS(ISA)
#undef ISA
};

#define ISA(...) +1
_Static_assert(PGEE_ISAS == 0 ALL_ISAS(ISA), "perigee.h and kernels/isa.h list the same ISAs");
#undef ISA

#define ISA(number, suffix, name, base, ...) \
  _Static_assert(PGEE_##base <= PGEE_##number, "an ISA's number is above that of its base, which is looked at first");
ALL_ISAS(ISA)
#undef ISA

/* Why each ISA does not run here; empty if it runs. Written once. */
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

/* The register states that the operating system saves, as bits of XCR0; 0 if the CPU has no XGETBV. */
static uint64_t saved_states(void) {
  if (!(cpuid(1, 0).ecx >> 27 & 1))
    return 0;
  uint32_t low, high;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

/* Bits of XCR0. */
enum { STATE_NONE = 0, STATE_YMM = 0x6, STATE_ZMM = 0xe6, STATE_TILES = 0x600e6 };

static const struct state {
  uint64_t bits;
  const char *name;
} states[PGEE_ISAS] = {
#define ISA(number, suffix, name, base, registers, automatic, flags) [PGEE_##number] = {STATE_##registers, #registers},
    ALL_ISAS(ISA)
#undef ISA
};

/* The name of the first CPUID feature that an ISA needs and the CPU lacks; NULL if the CPU has all. */
static const char *lacking(int isa) {
#define FEATURE(number, leaf, sub, reg, bit, name)                \
  if (isa == PGEE_##number && !(cpuid(leaf, sub).reg >> (bit)&1)) \
    return name;
  X86_FEATURES(FEATURE)
#undef FEATURE
  return NULL;
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

/* The reasons of isa's base are known already. */
static void look_at(int isa) {
  char *why = reasons[isa];
  size_t size = sizeof reasons[isa];
  const char *feature = lacking(isa);
  if (reasons[isas[isa].base][0])
    memcpy(why, reasons[isas[isa].base], size);
  else if (feature)
    snprintf(why, size, "the CPU lacks %s", feature);
  else if ((saved_states() & states[isa].bits) != states[isa].bits)
    snprintf(why, size, "the operating system does not save the %s registers", states[isa].name);
  else if (isa == PGEE_AMX)
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
  for (int isa = 0; isa < PGEE_ISAS; isa++)
    look_at(isa);
}

#else

static const char refused[1];
static const int was_refused;
static void ask_for(int isa) { (void)isa; }

static void look(void) {
#define ISA(number, ...) snprintf(reasons[PGEE_##number], sizeof reasons[0], "this is no x86-64 CPU");
  X86_ISAS(ISA)
#undef ISA
}

#endif

/* ---- The ISA in force --------------------------------------------------------------------------------------------- */

const char *pgee_isa_name(int isa) { return isa >= 0 && isa < PGEE_ISAS ? isas[isa].name : NULL; }

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

/* REF always runs. */
static int best(void) {
  int isa = PGEE_ISAS - 1;
  while (!isas[isa].automatic || !pgee_isa_runs(isa))
    isa--;
  return isa;
}

/* "ref, avx2 or amx". */
static void list_names(char *text, size_t size) {
  size_t at = 0;
  for (int isa = 0; isa < PGEE_ISAS && at < size; isa++)
    at += (size_t)snprintf(text + at, size - at, "%s%s", !isa ? "" : isa + 1 < PGEE_ISAS ? ", " : " or ", isas[isa].name);
}

static int from_environment(const char *name, int *out) {
  for (int isa = 0; isa < PGEE_ISAS; isa++) {
    if (strcmp(name, isas[isa].name) != 0)
      continue;
    if (!pgee_isa_runs(isa))
      return fail(PGEE_UNSUPPORTED, "PERIGEE_ISA=%s does not run here: %s", name, pgee_isa_reason(isa));
    *out = isa;
    return PGEE_OK;
  }
  char known[128];
  list_names(known, sizeof known);
  return fail(PGEE_ARGUMENT, "PERIGEE_ISA=%s, expected %s", name, known);
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
      now = unset; /* another thread was first, or called pgee_isa_set */
  }
  *isa = now;
  return PGEE_OK;
}

int pgee_isa_set(int isa) {
  if (!pgee_isa_name(isa))
    return fail(PGEE_ARGUMENT, "ISA is %d, expected 0 to %d", isa, PGEE_ISAS - 1);
  if (!pgee_isa_runs(isa))
    return fail(PGEE_UNSUPPORTED, "%s does not run here: %s", isas[isa].name, pgee_isa_reason(isa));
  in_force = isa;
  return PGEE_OK;
}
