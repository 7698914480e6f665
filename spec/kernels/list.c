/* list.c: the list of kernels (kernels/list.h) for specs and the bench. */
#include <stddef.h>

#include "engine/perigee.h"
#include "kernels/list.h"

#define PUBLIC __attribute__((visibility("default")))

enum { MAX_KERNELS = 32 };

#define NAME(op, isa) #op,
#define ROW(number, suffix, ...) [PGEE_##number] = {KERNELS_OF_##suffix(NAME)},
static const char *const operators[PGEE_ISAS][MAX_KERNELS] = {BUILT_ISAS(ROW)};

/* The operator of the i-th kernel of an ISA, from 0; NULL past the last one. */
PUBLIC const char *spec_kernels_operator(int isa, int i) { return operators[isa][i]; }

#define ROW_NAME(op, isa) #op,
static const char *const rows[] = {ROW_KERNELS(ROW_NAME, ) NULL};

/* The i-th operator of ROW_KERNELS, in the order of spec/kernels/rows.c; NULL past the last one. */
PUBLIC const char *spec_kernels_row_operator(int i) { return rows[i]; }
