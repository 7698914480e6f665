/* pages.h: memory that asks the kernel for transparent huge pages: 2 MiB to one entry of the TLB. For memory.c. */
#ifndef PERIGEE_PAGES_H
#define PERIGEE_PAGES_H
#include <stdint.h>

typedef struct pages_region pages_region;

/* Zeroed, aligned to 64 bytes, and the region it lies in; NULL if there is no memory. */
void *pages_new(int64_t bytes, pages_region **in);
/* Gives back what pages_new gave, to the system at once. */
void pages_free(void *block, int64_t bytes, pages_region *in);

#endif
