/* threads.h: how many threads a run uses, apart from the team so that a spec can ask it about another machine's files. */
#ifndef PERIGEE_THREADS_H
#define PERIGEE_THREADS_H

enum { MAX_THREADS = 256 };

/* One for each physical core among the `count` CPUs listed, capped by the cgroup's quota. `root` is put before /sys and
 * /proc: "". */
int threads_from(const char *root, const int *cpus, int count);
/* CPUs that this process may run on. */
int threads_cpus(void);

#endif
