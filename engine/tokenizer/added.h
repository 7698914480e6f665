/* added.h: added tokens, which are texts that are one token wherever they occur, such as [SEP], and the search for them. A
 * tokenizer has two sets: tokens that are looked for in the text as it is, and tokens that are looked for in the normalized
 * text. */
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

/* looked_for: the texts to look for; for tokens of the second set, the normalized text. An empty text is never found;
 * normalizing can make a text empty, for example an accent if accents are stripped. If texts are equal, the last one counts. */
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
