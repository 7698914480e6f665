/* thread_count.c: runs on a simulated machine, for the spec. */
#include <stdint.h>
#include <string.h>

#include "engine/cpu/thread_count.h"

/* Simulates `runs` runs of 40 steps and 32 tokens. A run takes `work` seconds divided by the number of threads, at most by `cores`, plus
 * `barrier` seconds for each thread but the first. threads[runs]: how many threads each run used. */
__attribute__((visibility("default"))) void spec_thread_count(int max, int cores, double work, double barrier, int runs,
                                                              int *threads) {
  thread_count p;
  memset(&p, 0, sizeof p);
  for (int i = 0; i < runs; i++) {
    int n = threads[i] = thread_count_next(&p, max, 1);
    thread_count_measured(&p, max, work / (n < cores ? n : cores) + barrier * (n - 1), 40, 32);
  }
}
