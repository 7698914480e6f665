/* memory.h: the engine's only allocator. It counts live bytes, aligns to 64 and, in the hard build (-DPGEE_HARD), poisons what is
 * freed and can be told to fail at the n-th call. */
#ifndef PERIGEE_MEMORY_H
#define PERIGEE_MEMORY_H
#include <stddef.h>
#include <stdint.h>

/* Zeroed, aligned to 64 bytes. NULL with the message set if there is no memory (callers return PGEE_MEMORY). 0 bytes is
 * allowed. */
void *mem_new(int64_t bytes);
/* The same in memory for which huge pages are asked, see pages.h. */
void *mem_huge(int64_t bytes);
/* The same for a cache that no handle holds and that lives until the process ends: pgee_live_bytes does not count it. */
void *mem_cache(int64_t bytes);
/* mem_new(count * size); if the product overflows, it fails. */
void *mem_array(int64_t count, int64_t size);
/* Returns a block of the new size with the old content as far as it fits; new bytes are zeros. The old block is freed. If the
 * result is NULL, the old block is unchanged. block may be NULL. */
void *mem_resize(void *block, int64_t bytes);
/* Frees a block; NULL does nothing. Aborts if the block was freed before or its head was overwritten. */
void mem_free(void *block);
/* A copy of a string. */
char *mem_string(const char *s);

#ifdef PGEE_HARD
/* Makes the n-th allocation from now (1 is the next one) and all after it fail; 0: none fails. For the hard build's specs. */
__attribute__((visibility("default"))) void pgee_fail_allocation(int64_t n);
#endif

#endif
