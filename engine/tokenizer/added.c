/* added.c: finds added tokens as the tokenizers package does, also in the corner cases of its options. See added.h. */
#include "added.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "unicode.h"

/* ---- In an image ----------------------------------------------------------------------------------------------------------- */

/* | how many | tokens | their texts | */
typedef struct added_head {
  int64_t count, text_bytes;
} added_head;

static int put_tokens(image_writer *w, const added_token *tokens, const names_added *texts, int64_t count) {
  added_head head = {.count = count};
  for (int64_t i = 0; i < count; i++)
    head.text_bytes += texts[i].bytes;
  char *out = image_new(w, IMAGE_ADDED, (int64_t)sizeof head + count * (int64_t)sizeof *tokens + head.text_bytes);
  if (!out)
    return PGEE_MEMORY;
  memcpy(out, &head, sizeof head);
  added_token *place = (added_token *)(out + sizeof head);
  char *bytes = (char *)(place + count);
  uint32_t at = 0;
  for (int64_t i = 0; i < count; at += (uint32_t)texts[i++].bytes) {
    place[i] = tokens[i];
    place[i].begin = at;
    place[i].length = (uint32_t)texts[i].bytes;
    if (texts[i].bytes > 0)
      memcpy(bytes + at, texts[i].text, (size_t)texts[i].bytes);
  }
  return PGEE_OK;
}

static int put_set(image_writer *w, const added_token *tokens, const names_added *looked_for, int64_t count, int normalized) {
  trie_builder b;
  int status = trie_new(&b);
  for (int64_t i = 0; status == PGEE_OK && i < count; i++)
    if (tokens[i].normalized == normalized && looked_for[i].bytes > 0)
      status = trie_insert(&b, looked_for[i].text, looked_for[i].bytes, (int32_t)i);
  if (status == PGEE_OK)
    status = normalized ? trie_write(&b, w, IMAGE_NORMAL_EDGES, IMAGE_NORMAL_VALUES)
                        : trie_write(&b, w, IMAGE_RAW_EDGES, IMAGE_RAW_VALUES);
  trie_free(&b);
  return status;
}

int added_build(image_writer *w, const added_token *tokens, const names_added *looked_for, const names_added *texts,
                int64_t count) {
  TRY(put_tokens(w, tokens, texts, count));
  TRY(put_set(w, tokens, looked_for, count, 0));
  return put_set(w, tokens, looked_for, count, 1);
}

/* The tokens and, behind them, their texts; both inside the section. */
static int section(const image *m, const added_token **tokens, int64_t *count, const char **texts, int64_t *text_bytes) {
  int64_t bytes;
  const added_head *head = image_section(m, IMAGE_ADDED, &bytes);
  if (bytes < (int64_t)sizeof *head || head->count < 0 || head->text_bytes < 0 ||
      head->count > bytes / (int64_t)sizeof **tokens ||
      (int64_t)sizeof *head + head->count * (int64_t)sizeof **tokens > bytes - head->text_bytes)
    return fail(PGEE_FORMAT, "the added tokens in the image of a tokenizer do not fill their section of %lld bytes",
                (long long)bytes);
  *tokens = (const added_token *)(head + 1);
  *count = head->count;
  *texts = (const char *)(*tokens + *count);
  *text_bytes = head->text_bytes;
  return PGEE_OK;
}

int added_open(added_set *a, const image *m, int normalized) {
  const char *texts;
  int64_t text_bytes;
  TRY(section(m, &a->tokens, &a->count, &texts, &text_bytes));
  TRY(normalized ? trie_open(&a->texts, m, IMAGE_NORMAL_EDGES, IMAGE_NORMAL_VALUES)
                 : trie_open(&a->texts, m, IMAGE_RAW_EDGES, IMAGE_RAW_VALUES));
  a->empty = 1;
  for (int byte = 0; byte < 256; byte++) {
    a->begins[byte] = trie_next(&a->texts, TRIE_ROOT, (uint8_t)byte) != TRIE_ROOT;
    a->empty = a->empty && !a->begins[byte];
  }
  return PGEE_OK;
}

int32_t added_id(const image *m, const char *text, int64_t bytes) {
  const added_token *tokens = NULL;
  const char *texts = NULL;
  int64_t count = 0, text_bytes = 0;
  if (section(m, &tokens, &count, &texts, &text_bytes) != PGEE_OK)
    return -1;
  for (int64_t i = count; i-- > 0;)
    if (tokens[i].length == bytes && bytes <= text_bytes && tokens[i].begin <= text_bytes - bytes &&
        memcmp(texts + tokens[i].begin, text, (size_t)bytes) == 0)
      return tokens[i].id;
  return -1;
}

/* ---- Searching ------------------------------------------------------------------------------------------------------------- */

static int flags_at(const char *text, int64_t bytes, int *size) {
  uint32_t c;
  *size = utf8_decode(text, bytes, &c);
  return unicode(c)->flags;
}

static int flags_before(const char *text, int64_t end, int *size) {
  uint32_t c;
  *size = utf8_before(text, end, &c);
  return unicode(c)->flags;
}

/* Whether the character before or after the match is part of a word. */
static int inside_word(const added_search *s, const added_match *m) {
  int size;
  return (m->begin > 0 && flags_before(s->text, m->begin, &size) & UNICODE_WORD) ||
         (m->end < s->bytes && flags_at(s->text + m->end, s->bytes - m->end, &size) & UNICODE_WORD);
}

/* Takes white space to the left and right of the match, if the token says so, but none that an earlier match took. */
static void take_spaces(const added_search *s, const added_token *t, added_match *m) {
  int size;
  while (t->lstrip && m->begin > s->covered && flags_before(s->text, m->begin, &size) & UNICODE_WHITE)
    m->begin -= size;
  if (t->lstrip && m->begin < s->covered)
    m->begin = s->covered;
  while (t->rstrip && m->end < s->bytes && flags_at(s->text + m->end, s->bytes - m->end, &size) & UNICODE_WHITE)
    m->end += size;
}

int added_next(added_search *s, added_match *m) {
  const added_set *set = s->set;
  if (set->empty)
    return 0;
  for (; s->at < s->bytes; s->at++) {
    if (!set->begins[(uint8_t)s->text[s->at]])
      continue;
    int64_t length;
    int32_t i = trie_longest(&set->texts, TRIE_ROOT, s->text + s->at, s->bytes - s->at, &length);
    if (i < 0 || i >= set->count)
      continue;
    *m = (added_match){s->at, s->at + length, set->tokens[i].id};
    s->at += length - 1; /* what is not taken is passed over whole */
    if (set->tokens[i].single_word && inside_word(s, m))
      continue;
    take_spaces(s, &set->tokens[i], m);
    if (m->begin >= m->end) /* all of it is white space that an earlier match took */
      continue;
    s->at++;
    return 1;
  }
  return 0;
}
