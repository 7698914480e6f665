/* memory.h: the engine's only allocator. It counts live bytes, aligns to 64 and, in the hard build (-DPGEE_HARD), poisons what is
 * freed and can be told to fail at the n-th call. */
#ifndef PERIGEE_MEMORY_H
#define PERIGEE_MEMORY_H
#include <stddef.h>
#include <stdint.h>

/* Zeroed, aligned to 64 bytes. NULL with the message set if there is no memory (callers return PGEE_MEMORY). 0 bytes is
 * allowed. */
void *mem_new(int64_t bytes);
/* The same, where the kernel gives them in huge pages. */
void *mem_huge(int64_t bytes);
/* The same for a cache that no handle holds and that lives until the process ends: pgee_live_bytes does not count it. */
void *mem_cache(int64_t bytes);
/* count * size with the overflow checked. */
void *mem_array(int64_t count, int64_t size);
/* Grows or shrinks, keeping what fits; new bytes are zero. On NULL the old block is as it was. */
void *mem_resize(void *block, int64_t bytes);
/* NULL does nothing. */
void mem_free(void *block);
/* A copy of a string. */
char *mem_string(const char *s);

#ifdef PGEE_HARD
/* The n-th allocation from now fails (1 is the next), and every one after it; 0: none. For spec/support's hard host. */
__attribute__((visibility("default"))) void pgee_fail_allocation(int64_t n);
#endif

#endif
