/* definition.h: checks of what a tokenizer is built from. */
#ifndef PERIGEE_DEFINITION_H
#define PERIGEE_DEFINITION_H
#include "engine/perigee.h"

/* PGEE_ARGUMENT for a value out of range or a text that is not UTF-8, PGEE_UNSUPPORTED for a size that is not supported. Regular
 * expressions, the charsmap and the tables of the model are checked when they are built. */
int definition_check(const pgee_tokenizer_definition *d);

#endif
