/* batch.h: checks of a batch that hold for every operator. */
#ifndef PERIGEE_BATCH_H
#define PERIGEE_BATCH_H
#include "engine/perigee.h"

/* Checks what perigee.h says of a pgee_batch: the starts ascend from 0 to T, and the marked rows lie within the batch. *S becomes
 * the length of the longest sequence, in tokens. */
int batch_check(const pgee_batch *batch, int64_t *S);

#endif
