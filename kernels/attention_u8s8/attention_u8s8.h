/* attention_u8s8.h: INT8 attention of one head, the same code (head.h, blocks.h) compiled for each ISA; kernels.h has the contract. */
#ifndef PERIGEE_ATTENTION_U8S8_H
#define PERIGEE_ATTENTION_U8S8_H
#include "kernels/kernels.h"

typedef void attend_u8s8(const attention_u8s8 *a, int64_t q0, int64_t q1, void *scratch);

attend_u8s8 attention_u8s8_ref, attention_u8s8_avx2, attention_u8s8_avxvnni, attention_u8s8_avx512vnni, attention_u8s8_amx;
/* amx.c on a portable model of the tile instructions. */
attend_u8s8 attention_u8s8_amx_model;

#endif
