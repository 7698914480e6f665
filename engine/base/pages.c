/* pages.c: memory for which Linux is asked for transparent huge pages. See pages.h.
 *
 * A region is a mapping that is aligned to a huge page. Blocks lie one behind another in a region, so that small blocks share a
 * huge page. When a block is freed, its pages go back to the system, and their addresses are not used again. A region without
 * blocks is unmapped. */
#include "pages.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "numbers.h"
#include "engine/perigee.h"
#include "status.h"

enum { PAGE = 4096, HUGE = 1 << 21, REGION = 1 << 25, LINE = 256 };

/* The first 64 bytes of its memory. */
struct pages_region {
  int64_t bytes, used, live; /* the size; bytes given to blocks so far, with this head; bytes of blocks that are not freed */
  pages_region *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pages_region *regions; /* new blocks are taken from the first */

/* Maps memory that is aligned to a huge page: maps more than needed and unmaps both ends. */
static char *map_aligned(int64_t bytes) {
  char *all = mmap(NULL, (size_t)(bytes + HUGE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED)
    return NULL;
  int64_t before = (HUGE - (int64_t)((uintptr_t)all % HUGE)) % HUGE;
  if (before > 0)
    munmap(all, (size_t)before);
  munmap(all + before + bytes, (size_t)(HUGE - before));
  madvise(all + before, (size_t)bytes, MADV_HUGEPAGE); /* a kernel without them gives small ones */
  return all + before;
}

static pages_region *region_new(int64_t bytes) {
  bytes = round_up(bytes + 64, HUGE);
  bytes = bytes > REGION ? bytes : REGION;
  pages_region *r = (pages_region *)(void *)map_aligned(bytes);
  if (r)
    *r = (pages_region){.bytes = bytes, .used = 64, .next = regions};
  return r;
}

void *pages_new(int64_t bytes, pages_region **in) {
  void *block = NULL;
  bytes = round_up(bytes, 64);
  pthread_mutex_lock(&lock);
  pages_region *r = regions && regions->used + bytes <= regions->bytes ? regions : region_new(bytes);
  if (r) {
    regions = r;
    block = (char *)r + r->used;
    r->used += bytes;
    r->live += bytes;
    *in = r;
  }
  pthread_mutex_unlock(&lock);
  return block;
}

static void region_free(pages_region *r) {
  pages_region **at = &regions;
  while (*at != r)
    at = &(*at)->next;
  *at = r->next;
  munmap(r, (size_t)r->bytes);
}

void pages_free(void *block, int64_t bytes, pages_region *in) {
  bytes = round_up(bytes, 64);
  uintptr_t first = ((uintptr_t)block + PAGE - 1) / PAGE * PAGE, last = ((uintptr_t)block + (uintptr_t)bytes) / PAGE * PAGE;
  pthread_mutex_lock(&lock);
  in->live -= bytes;
  if (in->live == 0)
    region_free(in);
  else if (first < last)
    madvise((void *)first, last - first, MADV_DONTNEED);
  pthread_mutex_unlock(&lock);
}

/* ---- What the kernel gave ----------------------------------------------------------------------------------------- */

static int in_a_region(uintptr_t first, uintptr_t last) {
  for (pages_region *r = regions; r; r = r->next)
    if (first < (uintptr_t)r + (uintptr_t)r->bytes && last > (uintptr_t)r)
      return 1;
  return 0;
}

/* In smaps each mapping begins with a line "first-last ...". A line below it says how much of the mapping lies in huge pages. */
static int64_t granted_in(FILE *smaps) {
  char line[LINE];
  int64_t kilobytes = 0;
  for (int ours = 0; fgets(line, sizeof line, smaps);) {
    unsigned long long first, last;
    long long here;
    if (sscanf(line, "%llx-%llx ", &first, &last) == 2)
      ours = in_a_region((uintptr_t)first, (uintptr_t)last);
    else if (ours && sscanf(line, "AnonHugePages: %lld kB", &here) == 1)
      kilobytes += here;
  }
  return kilobytes * 1024;
}

int pgee_huge_pages(int64_t *asked, int64_t *granted) {
  NEED(asked, granted);
  FILE *smaps = fopen("/proc/self/smaps", "re"); /* NULL in a container without /proc */
  pthread_mutex_lock(&lock);
  *asked = 0;
  for (pages_region *r = regions; r; r = r->next)
    *asked += r->live;
  *granted = smaps ? granted_in(smaps) : -1;
  pthread_mutex_unlock(&lock);
  if (smaps)
    fclose(smaps);
  return PGEE_OK;
}
