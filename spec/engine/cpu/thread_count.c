/* thread_count.c: runs of a machine that is made up, for specs. */
#include <stdint.h>
#include <string.h>

#include "engine/cpu/thread_count.h"

/* `runs` runs of 40 steps and 32 tokens, which take `work` seconds divided by the threads, but by no more than `cores`, and
 * `barrier` seconds for each thread but the first. threads[runs]: how many each used. */
__attribute__((visibility("default"))) void spec_pace(int most, int cores, double work, double barrier, int runs, int *threads) {
  pace p;
  memset(&p, 0, sizeof p);
  for (int i = 0; i < runs; i++) {
    int n = threads[i] = pace_threads(&p, most, 1);
    pace_took(&p, most, work / (n < cores ? n : cores) + barrier * (n - 1), 40, 32);
  }
}
