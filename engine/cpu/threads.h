/* threads.h: the default number of threads. */
#ifndef PERIGEE_THREADS_H
#define PERIGEE_THREADS_H

enum { MAX_THREADS = 256 };

/* One thread for each physical core among the `count` CPUs of `cpus`, limited by the cgroup's quota. `root` is put before the paths /sys
 * and /proc: "", or a folder in which a spec imitates another machine. */
int threads_from(const char *root, const int *cpus, int count);
/* The number of CPUs that this process may run on. */
int threads_cpus(void);

#endif
