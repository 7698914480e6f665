/* added.h: added tokens, texts that are one token wherever they stand, such as [SEP], and the search for them. A tokenizer has
 * two sets: those looked for in the text as it is, and those looked for after normalization. */
#ifndef PERIGEE_ADDED_H
#define PERIGEE_ADDED_H
#include "trie.h"

typedef struct added_token {
  int32_t id;
  uint8_t single_word, lstrip, rstrip;
} added_token;

typedef struct added_set {
  trie texts; /* values are indices into tokens */
  added_token *tokens;
  int32_t count, room;
  uint8_t begins[256]; /* 1 for the first bytes of the texts */
} added_set;

int added_new(added_set *a);
void added_free(added_set *a);
/* A text that is there already now means `token`. An empty one, as an accent is once accents are stripped, is never found. */
int added_add(added_set *a, const char *text, int64_t bytes, added_token token);

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
