/* pre_tokenizers.c: the steps that cut a normalized text into words. Some of them also change the text, one split at a time.
 *
 * A pattern divides a split into matches and the gaps between them. The step's behavior says what becomes of the matches. */
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "character.h"
#include "pipeline.h"
#include "unicode.h"

/* ---- Behaviors ------------------------------------------------------------------------------------------------------------- */

/* Takes the matches and gaps of one split in order, and puts splits by the behavior. */
typedef struct cutter {
  split_list *out;
  int64_t first;        /* index in `out` of the first split that comes from this one */
  int behavior, invert; /* invert: matches count as gaps, and gaps as matches */
  int previous;         /* the part before was a match */
  int64_t waiting[2];   /* a match that will be merged with the next gap; empty if there is none */
} cutter;

static int extend_last(cutter *c, int64_t begin, int64_t end) {
  if (c->out->count == c->first || begin >= end)
    return split_put(c->out, begin, end, -1);
  c->out->list[c->out->count - 1].end = (int32_t)end;
  return PGEE_OK;
}

static int give(cutter *c, int64_t begin, int64_t end, int is_match) {
  int match = is_match != c->invert, previous = c->previous;
  if (begin >= end)
    return PGEE_OK;
  c->previous = match;
  switch (c->behavior) {
  case PGEE_REMOVED: return match ? PGEE_OK : split_put(c->out, begin, end, -1);
  case PGEE_CONTIGUOUS: return match == previous ? extend_last(c, begin, end) : split_put(c->out, begin, end, -1);
  case PGEE_MERGED_WITH_PREVIOUS: return match && !previous ? extend_last(c, begin, end) : split_put(c->out, begin, end, -1);
  case PGEE_MERGED_WITH_NEXT:
    if (!match && c->waiting[0] < c->waiting[1])
      begin = c->waiting[0];
    else
      TRY(split_put(c->out, c->waiting[0], c->waiting[1], -1));
    c->waiting[0] = begin;
    c->waiting[1] = match ? end : begin;
    return match ? PGEE_OK : split_put(c->out, begin, end, -1);
  }
  return split_put(c->out, begin, end, -1);
}

static int finish(cutter *c) { return split_put(c->out, c->waiting[0], c->waiting[1], -1); }

static cutter cutter_for(split_list *out, int behavior, int invert) {
  return (cutter){.out = out, .first = out->count, .behavior = behavior, .invert = invert};
}

/* ---- Patterns -------------------------------------------------------------------------------------------------------------- */

/* Matches characters that have one of the flags, or if flags is 0 the character c. */
typedef struct matcher {
  uint32_t flags, c;
} matcher;

static int cut_by_characters(cutter *c, const spanned *in, split s, matcher m) {
  int64_t gap = s.begin;
  for (int64_t i = s.begin, size; i < s.end; i += size) {
    uint32_t at;
    size = utf8_decode(in->bytes + i, s.end - i, &at);
    if (m.flags ? !(unicode(at)->flags & m.flags) : at != m.c)
      continue;
    TRY(give(c, gap, i, 0));
    TRY(give(c, i, i + size, 1));
    gap = i + size;
  }
  TRY(give(c, gap, s.end, 0));
  return finish(c);
}

static int cut_by_text(cutter *c, const spanned *in, split s, const char *text, int64_t bytes) {
  int64_t at = s.begin;
  for (const char *found; bytes > 0 && (found = memmem(in->bytes + at, (size_t)(s.end - at), text, (size_t)bytes)); at += bytes) {
    TRY(give(c, at, found - in->bytes, 0));
    at = found - in->bytes;
    TRY(give(c, at, at + bytes, 1));
  }
  TRY(give(c, at, s.end, 0));
  return finish(c);
}

static int cut_by_pattern(cutter *c, const spanned *in, split s, const pattern *p) {
  const char *text = in->bytes + s.begin;
  int64_t length = s.end - s.begin, at = 0, begin, end;
  while (pattern_next(p, text, at, length, &begin, &end)) {
    TRY(give(c, s.begin + at, s.begin + begin, 0));
    TRY(give(c, s.begin + begin, s.begin + end, 1));
    at = end;
  }
  TRY(give(c, s.begin + at, s.end, 0));
  return finish(c);
}

/* \w+|[^\w\s]+ */
static int cut_at_white_space(split_list *out, const spanned *in, split s) {
  int64_t begin = s.begin;
  int kind = 0; /* of the characters from `begin` on: 0 white space, or none; 1 letters of a word; 2 others */
  for (int64_t i = s.begin, size; i < s.end; i += size) {
    uint32_t c;
    size = utf8_decode(in->bytes + i, s.end - i, &c);
    int flags = unicode(c)->flags, next = flags & UNICODE_WORD ? 1 : flags & UNICODE_WHITE ? 0 : 2;
    if (next == kind)
      continue;
    if (kind)
      TRY(split_put(out, begin, i, -1));
    begin = i;
    kind = next;
  }
  return kind ? split_put(out, begin, s.end, -1) : PGEE_OK;
}

/* Words end at white space; each punctuation character is a word. */
static int cut_as_bert(split_list *out, const spanned *in, split s) {
  int64_t begin = s.begin;
  for (int64_t i = s.begin, size; i < s.end; i += size) {
    uint32_t c;
    size = utf8_decode(in->bytes + i, s.end - i, &c);
    int flags = unicode(c)->flags;
    if (!(flags & (UNICODE_WHITE | UNICODE_PUNCT)))
      continue;
    TRY(split_put(out, begin, i, -1));
    if (!(flags & UNICODE_WHITE))
      TRY(split_put(out, i, i + size, -1));
    begin = i + size;
  }
  return split_put(out, begin, s.end, -1);
}

static int cut_by_length(split_list *out, const spanned *in, split s, int64_t length) {
  int64_t begin = s.begin, n = 0;
  for (int64_t i = s.begin, size; i < s.end; i += size) {
    uint32_t c;
    size = utf8_decode(in->bytes + i, s.end - i, &c);
    if (n++ == length) {
      TRY(split_put(out, begin, i, -1));
      begin = i;
      n = 1;
    }
  }
  return split_put(out, begin, s.end, -1);
}

/* ---- GPT-2's pattern ------------------------------------------------------------------------------------------------------- */

/* The kind of a character in this pattern. */
enum { GPT2_END = 1 };
static const int GPT2_KINDS = UNICODE_SPACE | UNICODE_LETTER | UNICODE_NUMBER;

static int gpt2_kind(const char *text, int64_t at, int64_t end, int *size) {
  uint32_t c;
  if (at >= end)
    return GPT2_END;
  *size = utf8_decode(text + at, end - at, &c);
  return unicode(c)->flags & GPT2_KINDS;
}

/* The number of bytes of 's|'t|'re|'ve|'m|'ll|'d at the apostrophe; 0 if there is none. */
static int contraction(const char *text, int64_t at, int64_t end) {
  char a = at + 1 < end ? text[at + 1] : 0, b = at + 2 < end ? text[at + 2] : 0;
  if (a == 's' || a == 't' || a == 'm' || a == 'd')
    return 2;
  return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/* Where a word ends: 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+ */
static int64_t gpt2_word(const char *text, int64_t at, int64_t end) {
  int size = 0, before = 1, kind, contracted = text[at] == '\'' ? contraction(text, at, end) : 0;
  if (contracted)
    return at + contracted;
  int64_t i = at;
  if (text[i] == ' ' && (kind = gpt2_kind(text, i + 1, end, &size)) != GPT2_END && !(kind & UNICODE_SPACE))
    i++;
  kind = gpt2_kind(text, i, end, &size);
  for (int next = kind; next == kind; next = gpt2_kind(text, i, end, &size)) {
    before = size;
    i += size;
  }
  /* \s+(?!\S): the last white space before a word is not part of the match. */
  return kind & UNICODE_SPACE && i < end && i - before > at ? i - before : i;
}

static int cut_as_gpt2(split_list *out, const char *text, int64_t begin, int64_t end) {
  for (int64_t at = begin, next; at < end; at = next) {
    next = gpt2_word(text, at, end);
    TRY(split_put(out, at, next, -1));
  }
  return PGEE_OK;
}

/* ---- Steps that change the text -------------------------------------------------------------------------------------------- */

/* Finds the words of a split, with a space before it if add_prefix_space, and then replaces each byte by its character. */
static int put_byte_level(const step *s, const spanned *in, split from, pipeline *r) {
  spanned *out = &r->texts[1], *with_space = &r->texts[2];
  split_list *to = &r->splits[1];
  int64_t first = to->count, shift = from.begin;
  if (s->a && in->bytes[from.begin] != ' ') {
    with_space->length = 0;
    TRY(spanned_put(with_space, ' ', in->spans[from.begin]));
    TRY(spanned_keep(with_space, in, from.begin, from.end));
    in = with_space;
    from = (split){0, (int32_t)with_space->length, -1};
    shift = 0;
  }
  TRY(s->b ? cut_as_gpt2(to, in->bytes, from.begin, from.end) : split_put(to, from.begin, from.end, -1));
  TRY(spanned_reserve(out, 2 * (from.end - from.begin)));
  for (int64_t i = first, at = shift; i < to->count; i++) {
    split *word = &to->list[i];
    word->begin = (int32_t)out->length;
    for (; at < word->end; at++)
      TRY(spanned_put(out, character_of_byte((uint8_t)in->bytes[at]), in->spans[at]));
    word->end = (int32_t)out->length;
  }
  return PGEE_OK;
}

static int put_metaspace(const step *s, const spanned *in, split from, pipeline *r) {
  spanned *out = &r->texts[1];
  uint32_t c;
  int64_t begin = out->length;
  TRY(spanned_reserve(out, from.end - from.begin + 4));
  utf8_decode(in->bytes + from.begin, from.end - from.begin, &c);
  int starts = c == ' ' || c == (uint32_t)s->a;
  if (!starts && (s->b == PGEE_PREPEND_ALWAYS || (s->b == PGEE_PREPEND_FIRST && in->spans[from.begin].begin == 0)))
    TRY(spanned_put(out, (uint32_t)s->a, in->spans[from.begin]));
  for (int64_t i = from.begin; i < from.end;) {
    int64_t plain = i;
    while (plain < from.end && in->bytes[plain] != ' ')
      plain++;
    TRY(spanned_keep(out, in, i, plain));
    if (plain < from.end)
      TRY(spanned_put(out, (uint32_t)s->a, in->spans[plain]));
    i = plain + 1;
  }
  if (!s->c)
    return split_put(&r->splits[1], begin, out->length, -1);
  cutter cut = cutter_for(&r->splits[1], PGEE_MERGED_WITH_NEXT, 0);
  return cut_by_characters(&cut, out, (split){(int32_t)begin, (int32_t)out->length, -1}, (matcher){0, (uint32_t)s->a});
}

/* Copies an added token. */
static int put_added(const spanned *in, split from, pipeline *r) {
  int64_t begin = r->texts[1].length;
  TRY(spanned_keep(&r->texts[1], in, from.begin, from.end));
  return split_put(&r->splits[1], begin, r->texts[1].length, from.id);
}

/* ---- All of them ----------------------------------------------------------------------------------------------------------- */

static int changes_text(const step *s) { return s->kind == PGEE_STEP_METASPACE || s->kind == PGEE_STEP_BYTE_LEVEL; }

static int cut(const step *s, const spanned *in, split from, pipeline *r) {
  split_list *out = &r->splits[1];
  cutter isolated = cutter_for(out, PGEE_ISOLATED, 0);
  switch (s->kind) {
  case PGEE_STEP_BERT_PRE_TOKENIZER: return cut_as_bert(out, in, from);
  case PGEE_STEP_WHITESPACE: return cut_at_white_space(out, in, from);
  case PGEE_STEP_WHITESPACE_SPLIT:
    isolated.behavior = PGEE_REMOVED;
    return cut_by_characters(&isolated, in, from, (matcher){UNICODE_WHITE, 0});
  case PGEE_STEP_CHAR_DELIMITER:
    isolated.behavior = PGEE_REMOVED;
    return cut_by_characters(&isolated, in, from, (matcher){0, (uint32_t)s->a});
  case PGEE_STEP_PUNCTUATION:
    isolated.behavior = s->a;
    return cut_by_characters(&isolated, in, from, (matcher){UNICODE_PUNCT, 0});
  case PGEE_STEP_DIGITS:
    isolated.behavior = s->a ? PGEE_ISOLATED : PGEE_CONTIGUOUS;
    return cut_by_characters(&isolated, in, from, (matcher){UNICODE_NUMERIC, 0});
  case PGEE_STEP_SPLIT:
    isolated.behavior = s->b;
    isolated.invert = s->c != 0;
    return s->pattern ? cut_by_pattern(&isolated, in, from, s->pattern)
                      : cut_by_text(&isolated, in, from, s->text, s->text_bytes);
  case PGEE_STEP_METASPACE: return put_metaspace(s, in, from, r);
  case PGEE_STEP_BYTE_LEVEL: return put_byte_level(s, in, from, r);
  case PGEE_STEP_FIXED_LENGTH: return cut_by_length(out, in, from, s->a);
  }
  return fail(PGEE_FORMAT, "a pre-tokenizer of kind %d", s->kind);
}

int pre_tokenizers_run(const pgee_tokenizer *t, pipeline *r) {
  for (int64_t i = 0; i < t->pre_tokenizers.count; i++) {
    const step *s = &t->pre_tokenizers.list[i];
    int changes = changes_text(s);
    r->splits[1].count = 0;
    r->texts[1].length = 0;
    for (int64_t j = 0; j < r->splits[0].count; j++) {
      split from = r->splits[0].list[j];
      if (from.id < 0)
        TRY(cut(s, &r->texts[0], from, r));
      else
        TRY(changes ? put_added(&r->texts[0], from, r) : split_put(&r->splits[1], from.begin, from.end, from.id));
    }
    split_list swap = r->splits[0];
    r->splits[0] = r->splits[1];
    r->splits[1] = swap;
    if (!changes)
      continue;
    spanned text = r->texts[0];
    r->texts[0] = r->texts[1];
    r->texts[1] = text;
  }
  return PGEE_OK;
}
