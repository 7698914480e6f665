/* memory.c: blocks with a 64-byte head that holds their size.
 *
 *   | size, magic, region, pad to 64 | the block, aligned to 64 |
 *
 * A large block is a mapping of its own, so that freeing it gives its memory back to the system. The C library would keep the
 * memory after a program has freed blocks of such a size, which happens when a workspace grows.
 */
#include "memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "numbers.h"
#include "pages.h"
#include "status.h"

enum { HEAD = 64 };

typedef struct head {
  int64_t bytes;
  uint64_t magic;
  pages_region *in; /* NULL unless it is in huge pages */
  int counted;      /* in live bytes */
} head;

static const uint64_t MAGIC = 0x5045524947454521u;
static _Atomic int64_t live, peak;

#ifdef PGEE_HARD
static const int64_t LARGE = INT64_MAX; /* sanitizers watch what malloc gives */
static _Atomic int64_t countdown;

void pgee_fail_allocation(int64_t n) { countdown = n; }

/* Counts down to 1 and stays there, so that all allocations after the first failure fail too. */
static int told_to_fail(void) {
  int64_t n = countdown;
  if (n > 1)
    countdown = n - 1;
  return n == 1;
}
#else
static const int64_t LARGE = 1 << 20;
static int told_to_fail(void) { return 0; }
#endif

static void count(int64_t bytes) {
  int64_t now = atomic_fetch_add(&live, bytes) + bytes, high = peak;
  while (now > high && !atomic_compare_exchange_weak(&peak, &high, now)) {
  }
}

static void *zeroed(int64_t bytes) {
  size_t size = (size_t)bytes;
  if (bytes >= LARGE) {
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return base == MAP_FAILED ? NULL : base;
  }
  void *base = aligned_alloc(64, size);
  return base ? memset(base, 0, size) : NULL;
}

/* The size of a block with its head. */
static int64_t room_for(int64_t bytes) { return HEAD + round_up(bytes, 64); }

static void *block_new(int64_t bytes, int huge, int counted) {
  void *base = NULL;
  pages_region *in = NULL;
  if (bytes >= 0 && bytes < INT64_MAX / 2 && !told_to_fail()) {
    base = huge ? pages_new(room_for(bytes), &in) : zeroed(room_for(bytes));
  }
  if (!base) {
    fail(PGEE_MEMORY, "out of memory: %lld bytes asked for", (long long)bytes);
    return NULL;
  }
  *(head *)base = (head){bytes, MAGIC, in, counted};
  if (counted)
    count(bytes);
  return (char *)base + HEAD;
}

void *mem_new(int64_t bytes) { return block_new(bytes, 0, 1); }
void *mem_huge(int64_t bytes) { return block_new(bytes, 1, 1); }
void *mem_cache(int64_t bytes) { return block_new(bytes, 0, 0); }

void *mem_array(int64_t items, int64_t size) {
  int64_t bytes;
  if (__builtin_mul_overflow(items, size, &bytes))
    bytes = -1;
  return mem_new(bytes);
}

void *mem_resize(void *block, int64_t bytes) {
  void *grown = mem_new(bytes);
  if (grown && block) {
    int64_t old = ((head *)((char *)block - HEAD))->bytes;
    memcpy(grown, block, (size_t)(old < bytes ? old : bytes));
    mem_free(block);
  }
  return grown;
}

void mem_free(void *block) {
  if (!block)
    return;
  head *h = (head *)((char *)block - HEAD);
  if (h->magic != MAGIC) { /* freed before, or overwritten */
#ifdef PGEE_HARD
    abort();
#endif
    return; /* to free it would corrupt the heap */
  }
  if (h->counted)
    count(-h->bytes);
#ifdef PGEE_HARD
  memset(block, 0xA5, (size_t)h->bytes);
#endif
  h->magic = 0;
  if (h->in)
    pages_free(h, HEAD + h->bytes, h->in);
  else if (room_for(h->bytes) >= LARGE)
    munmap(h, (size_t)room_for(h->bytes));
  else
    free(h);
}

char *mem_string(const char *s) {
  int64_t bytes = (int64_t)strlen(s) + 1;
  char *copy = mem_new(bytes);
  return copy ? memcpy(copy, s, (size_t)bytes) : NULL;
}

int64_t pgee_live_bytes(void) { return live; }
int64_t pgee_peak_bytes(void) { return peak; }
void pgee_peak_reset(void) { peak = live; }
