/* pages.h: memory for which Linux is asked for transparent huge pages: one entry of the TLB then covers 2 MiB. Used by
 * memory.c. */
#ifndef PERIGEE_PAGES_H
#define PERIGEE_PAGES_H
#include <stdint.h>

typedef struct pages_region pages_region;

/* A block of zeros, aligned to 64 bytes, and the region that it lies in; NULL if there is no memory. */
void *pages_new(int64_t bytes, pages_region **in);
/* Frees a block of pages_new. Whole pages go back to the system at once. */
void pages_free(void *block, int64_t bytes, pages_region *in);

#endif
