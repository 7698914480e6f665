/* rows.h: the row operators and tile epilogues, one body (body.h) compiled for each ISA; kernels.h says what each does. */
#ifndef PERIGEE_ROWS_H
#define PERIGEE_ROWS_H
#include "engine/perigee.h"
#include "kernels/list.h"

#endif
