/* names.h: the text of each id, and the id of each text.
 *
 *   id --places--> begin, length --texts--> its bytes --names, a hash table--> the id
 *
 * The hash table has only the pieces of the model. An added token whose id is not in the model has a place of its own. An added
 * token whose id has another text in the model is in the short list `renamed`. Whatever bytes the sections have, reading stays
 * inside of them. */
#ifndef PERIGEE_NAMES_H
#define PERIGEE_NAMES_H
#include "image.h"
#include "model.h"

typedef struct names_place {
  uint32_t begin, length; /* length: NAME_MISSING, or bytes, and what follows */
} names_place;

enum { NAME_MISSING = 0x3FFFFFFF };
#define NAME_SPECIAL 0x80000000u /* decoding leaves it out */
#define NAME_RENAMED 0x40000000u /* another text is shown */

typedef struct names_change {
  int32_t id;
  uint32_t begin, length;
} names_change;

typedef struct names {
  const char *texts;
  const names_place *places; /* [count] */
  const int32_t *slots;      /* [1 << bits] an id plus 1; 0 is free, and one at least is */
  const names_change *renamed;
  int64_t bytes, count, renamed_count;
  int bits;
} names;

/* The text of an added token, or another text for a piece. */
typedef struct names_added {
  const char *text;
  int64_t bytes;
  int32_t id;
  int special;
} names_added;

/* If pieces are equal, or if names have the same id, the last one counts. */
int names_build(image_writer *w, const model_vocabulary *vocabulary, const names_added *added, int64_t added_count);
int names_open(names *n, const image *m);
/* NULL, of 0 bytes, if there is no such id. */
const char *names_text(const names *n, int64_t id, int64_t *bytes, int *special);
/* The same, but for a renamed token the text that it has in the model. */
const char *names_piece(const names *n, int64_t id, int64_t *bytes);
/* The id of a piece of the model; -1 if there is none. */
int32_t names_id(const names *n, const char *text, int64_t bytes);

#endif
