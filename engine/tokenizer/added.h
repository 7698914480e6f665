/* added.h: added tokens, texts that are one token wherever they stand, such as [SEP], and the search for them. A tokenizer has
 * two sets: those looked for in the text as it is, and those looked for after normalization. */
#ifndef PERIGEE_ADDED_H
#define PERIGEE_ADDED_H
#include "image.h"
#include "names.h"
#include "trie.h"

typedef struct added_token {
  int32_t id;
  uint8_t single_word, lstrip, rstrip, normalized;
  uint32_t begin, length; /* of its text, behind the tokens in its section */
} added_token;

typedef struct added_set {
  trie texts; /* values are indices into tokens */
  const added_token *tokens;
  int64_t count;       /* of all tokens, in both sets */
  int empty;           /* nothing is ever found */
  uint8_t begins[256]; /* 1 for the first bytes of the texts */
} added_set;

/* What is looked for: `text` for those not normalized, else what normalizing makes of it. An empty one, as an accent is once
 * accents are stripped, is never found. Of equal ones the last counts. */
int added_build(image_writer *w, const added_token *tokens, const names_added *looked_for, const names_added *texts,
                int64_t count);
/* normalized: which of the two sets. */
int added_open(added_set *a, const image *m, int normalized);
/* The id of an added token; -1 if there is none. */
int32_t added_id(const image *m, const char *text, int64_t bytes);

/* Where a search stands. From `at` on is to be searched, up to `covered` is what earlier matches took. Begin with zeros. */
typedef struct added_search {
  const added_set *set;
  const char *text;
  int64_t bytes, at, covered;
} added_search;

typedef struct added_match {
  int64_t begin, end; /* with the white space that it takes */
  int32_t id;
} added_match;

/* The next token: the leftmost, and of those the longest. 0 if there is none. The caller moves `covered` to its end. */
int added_next(added_search *s, added_match *m);

#endif
