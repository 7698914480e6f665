/* threads.c: the default number of threads.
 *
 * It is PERIGEE_THREADS, or one for each physical core in the affinity mask, because two threads on one core share its multipliers. The
 * CPU quota of a cgroup limits the number: the system would stop further threads in the middle of a step while the others wait.
 */
#include "threads.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/perigee.h"
#include "engine/base/status.h"

enum { MAX_CPUS = 8192, LINE = 1024, PATH = 4096 };

/* ---- Physical cores ----------------------------------------------------------------------------------------------- */

/* The lowest-numbered CPU on the core of `cpu`; `cpu` itself if the system has no such file. */
static int core_of(const char *root, int cpu) {
  static const char *const files[] = {"core_cpus_list", "thread_siblings_list"}; /* new and old name */
  for (int i = 0; i < 2; i++) {
    char path[PATH];
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/%s", root, cpu, files[i]);
    FILE *f = fopen(path, "re");
    int first, found = f && fscanf(f, "%d", &first) == 1 && first >= 0 && first < MAX_CPUS;
    if (f)
      fclose(f);
    if (found)
      return first;
  }
  return cpu;
}

static int count_cores(const char *root, const int *cpus, int count) {
  unsigned char seen[MAX_CPUS] = {0};
  int cores = 0;
  for (int i = 0; i < count; i++) {
    int core = core_of(root, cpus[i]);
    cores += !seen[core];
    seen[core] = 1;
  }
  return cores > 0 ? cores : 1;
}

/* ---- The cgroup's quota ------------------------------------------------------------------------------------------- */

/* Quota divided by period, which stand in one file (cgroup version 2) or in two. 0: no limit ("max" or -1), or no such file. */
static double ratio(const char *quota_path, const char *period_path) {
  long long quota = 0, period = 0;
  FILE *f = fopen(quota_path, "re");
  if (!f)
    return 0;
  int read = fscanf(f, "%lld %lld", &quota, &period);
  fclose(f);
  if (period_path && read == 1 && (f = fopen(period_path, "re"))) {
    read += fscanf(f, "%lld", &period);
    fclose(f);
  }
  return read == 2 && quota > 0 && period > 0 ? (double)quota / (double)period : 0;
}

/* The smallest quota of a group and its parent groups; 0: none has a quota. mount: the mount point of the hierarchy. group: the path
 * below it, which this function shortens. */
static double quota_of(const char *mount, char *group, int version) {
  double smallest = 0;
  for (;;) {
    char quota[PATH], period[PATH];
    snprintf(quota, sizeof quota, version == 2 ? "%s%s/cpu.max" : "%s%s/cpu.cfs_quota_us", mount, group);
    snprintf(period, sizeof period, "%s%s/cpu.cfs_period_us", mount, group);
    double q = ratio(quota, version == 2 ? NULL : period);
    if (q > 0 && (smallest == 0 || q < smallest))
      smallest = q;
    char *slash = strrchr(group, '/');
    if (!slash)
      return smallest;
    *slash = 0; /* the last round reads the mount point itself, where a container finds its own group */
  }
}

/* 1 if `name` is one of a comma-separated list. */
static int listed(const char *list, const char *name) {
  size_t n = strlen(name);
  for (const char *at = list; (at = strstr(at, name)); at += n)
    if ((at == list || at[-1] == ',') && (at[n] == ',' || !at[n]))
      return 1;
  return 0;
}

/* The smallest quota of this process's groups; 0: none. Lines of /proc/self/cgroup are number:controllers:path. Version 2 has no
 * controllers. */
static double quota_from(const char *root) {
  char path[PATH], line[LINE], mount[LINE];
  double smallest = 0;
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  FILE *f = fopen(path, "re");
  while (f && fgets(line, sizeof line, f)) {
    line[strcspn(line, "\n")] = 0;
    char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
      continue;
    controllers++;
    *group++ = 0;
    int version = controllers[0] ? 1 : 2;
    if (version == 1 && !listed(controllers, "cpu"))
      continue;
    snprintf(mount, sizeof mount, version == 2 ? "%s/sys/fs/cgroup" : "%s/sys/fs/cgroup/cpu", root);
    double q = quota_of(mount, group, version);
    if (q > 0 && (smallest == 0 || q < smallest))
      smallest = q;
  }
  if (f)
    fclose(f);
  return smallest;
}

int threads_from(const char *root, const int *cpus, int count) {
  int threads = count_cores(root, cpus, count);
  double quota = quota_from(root);
  if (quota > 0 && quota < threads)
    threads = quota < 1 ? 1 : (int)quota;
  return threads > MAX_THREADS ? MAX_THREADS : threads;
}

/* ---- This machine ------------------------------------------------------------------------------------------------- */

/* Fills cpus[MAX_CPUS] and returns how many. */
static int affinity(int *cpus) {
  cpu_set_t set[MAX_CPUS / CPU_SETSIZE];
  int count = 0;
  memset(set, 0, sizeof set);
  if (sched_getaffinity(0, sizeof set, set) == 0)
    for (int cpu = 0; cpu < MAX_CPUS; cpu++)
      if (CPU_ISSET_S((size_t)cpu, sizeof set, set))
        cpus[count++] = cpu;
  if (count == 0)
    cpus[count++] = 0;
  return count;
}

int threads_cpus(void) {
  int cpus[MAX_CPUS];
  return affinity(cpus);
}

static int from_environment(const char *text, int *out) {
  char *end;
  long n = strtol(text, &end, 10);
  if (text[0] < '0' || text[0] > '9' || *end || n < 1 || n > MAX_THREADS)
    return fail(PGEE_ARGUMENT, "PERIGEE_THREADS=%s, expected 1 to %d", text, MAX_THREADS);
  *out = (int)n;
  return PGEE_OK;
}

static _Atomic int in_force; /* 0: not determined yet */

int pgee_threads(int *threads) {
  NEED(threads);
  int now = in_force;
  if (now == 0) {
    const char *text = getenv("PERIGEE_THREADS");
    if (text && text[0]) {
      TRY(from_environment(text, &now));
    } else {
      int cpus[MAX_CPUS];
      int count = affinity(cpus);
      now = threads_from("", cpus, count);
    }
    int unset = 0;
    if (!atomic_compare_exchange_strong(&in_force, &unset, now))
      now = unset; /* another thread was first, or called pgee_threads_set */
  }
  *threads = now;
  return PGEE_OK;
}

int pgee_threads_set(int threads) {
  if (threads < 1 || threads > MAX_THREADS)
    return fail(PGEE_ARGUMENT, "%d threads, expected 1 to %d", threads, MAX_THREADS);
  in_force = threads;
  return PGEE_OK;
}
