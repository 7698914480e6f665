/* rows.h: the row operators and tile epilogues, one body (body.h) compiled for each ISA; kernels.h says what each does. */
#ifndef PERIGEE_ROWS_H
#define PERIGEE_ROWS_H
#include "engine/perigee.h"
#include "kernels/list.h"

/* GELU is rounded where its result is only stored in 8 bits. */
static inline int rounded_activation(const epilogue *e) {
  int gelu = e->activation == PGEE_GELU ? PGEE_GELU_ROUNDED : e->activation == PGEE_GELU_TANH ? PGEE_GELU_TANH_ROUNDED : 0;
  return gelu && e->q && !e->y ? gelu : e->activation;
}

#endif
