/* added.c: finds added tokens as the reference does, its options' corner cases included. See added.h. */
#include "added.h"

#include <string.h>

#include "../memory.h"
#include "../status.h"
#include "unicode.h"

int added_new(added_set *a) {
  *a = (added_set){.count = 0};
  return trie_new(&a->texts);
}

void added_free(added_set *a) {
  trie_free(&a->texts);
  mem_free(a->tokens);
}

int added_add(added_set *a, const char *text, int64_t bytes, added_token token) {
  if (bytes == 0)
    return PGEE_OK;
  if (a->count == a->room) {
    int32_t room = a->room ? a->room * 2 : 8;
    added_token *tokens = mem_resize(a->tokens, room * (int64_t)sizeof *tokens);
    if (!tokens)
      return PGEE_MEMORY;
    a->tokens = tokens;
    a->room = room;
  }
  TRY(trie_insert(&a->texts, text, bytes, a->count));
  a->tokens[a->count++] = token;
  a->begins[(uint8_t)text[0]] = 1;
  return PGEE_OK;
}

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

/* Whether a part of a word stands next to m. */
static int inside_word(const added_search *s, const added_match *m) {
  int size;
  return (m->begin > 0 && flags_before(s->text, m->begin, &size) & UNICODE_WORD) ||
         (m->end < s->bytes && flags_at(s->text + m->end, s->bytes - m->end, &size) & UNICODE_WORD);
}

/* White space that an earlier match took is not taken again. */
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
  for (; s->at < s->bytes; s->at++) {
    if (!set->begins[(uint8_t)s->text[s->at]])
      continue;
    int64_t length;
    int32_t i = trie_longest(&set->texts, TRIE_ROOT, s->text + s->at, s->bytes - s->at, &length);
    if (i < 0)
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
