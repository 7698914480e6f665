/* definition.c: the target that builds tokenizers from definitions, which it reads from its input. */
#include <string.h>

#include "targets.h"

enum { MOST_PIECES = 48, MOST_STEPS = 5, MOST_ADDED = 6 };

static const int32_t NORMALIZERS[] = {PGEE_STEP_BERT_NORMALIZER,
                                      PGEE_STEP_NFC,
                                      PGEE_STEP_NFD,
                                      PGEE_STEP_NFKC,
                                      PGEE_STEP_NFKD,
                                      PGEE_STEP_LOWERCASE,
                                      PGEE_STEP_STRIP_ACCENTS,
                                      PGEE_STEP_STRIP,
                                      PGEE_STEP_REPLACE,
                                      PGEE_STEP_PREPEND,
                                      PGEE_STEP_NMT,
                                      PGEE_STEP_BYTE_LEVEL_NORMALIZER,
                                      PGEE_STEP_PRECOMPILED,
                                      PGEE_STEP_METASPACE,
                                      99};
static const int32_t PRE_TOKENIZERS[] = {PGEE_STEP_BERT_PRE_TOKENIZER, PGEE_STEP_WHITESPACE, PGEE_STEP_WHITESPACE_SPLIT,
                                         PGEE_STEP_PUNCTUATION,        PGEE_STEP_DIGITS,     PGEE_STEP_SPLIT,
                                         PGEE_STEP_METASPACE,          PGEE_STEP_BYTE_LEVEL, PGEE_STEP_CHAR_DELIMITER,
                                         PGEE_STEP_FIXED_LENGTH,       PGEE_STEP_NFC};
static const int32_t DECODERS[] = {PGEE_STEP_DECODE_WORDPIECE, PGEE_STEP_DECODE_BPE,    PGEE_STEP_DECODE_FUSE,
                                   PGEE_STEP_DECODE_STRIP,     PGEE_STEP_BYTE_FALLBACK, PGEE_STEP_REPLACE,
                                   PGEE_STEP_METASPACE,        PGEE_STEP_BYTE_LEVEL,    PGEE_STEP_SPLIT};

#define KINDS(list) list, (int)(sizeof(list) / sizeof *(list))

static const pgee_tokenizer_step *take_steps(input *in, const int32_t *kinds, int kind_count, int64_t *count) {
  *count = take_choice(in, MOST_STEPS + 1);
  pgee_tokenizer_step *list = take_block(in, *count * (int64_t)sizeof *list);
  *count = list ? *count : 0;
  for (int64_t i = 0; i < *count; i++) {
    pgee_tokenizer_step *s = &list[i];
    s->kind = kinds[take_choice(in, kind_count)];
    s->a = take_integer(in);
    s->b = take_integer(in);
    s->c = take_integer(in);
    s->d = take_integer(in);
    s->text = take_text(in, 64, &s->text_bytes, 0);
    s->more = take_text(in, 64, &s->more_bytes, 0);
  }
  return list;
}

/* Pieces lie one behind another in one block. */
static void take_pieces(input *in, pgee_tokenizer_definition *d) {
  int64_t count = take_choice(in, MOST_PIECES + 1), bytes = 0, at = 0;
  const char *texts[MOST_PIECES];
  int64_t lengths[MOST_PIECES];
  int64_t *ends = take_block(in, count * (int64_t)sizeof *ends);
  double *scores = take_block(in, count * (int64_t)sizeof *scores);
  int32_t *ids = take_choice(in, 4) == 0 ? take_block(in, (int64_t)sizeof(int32_t) * count) : NULL;
  for (int64_t i = 0; i < count; i++) {
    texts[i] = take_text(in, 32, &lengths[i], 0);
    bytes += lengths[i];
    scores[i] = -take_byte(in) / 16.0;
    if (ids)
      ids[i] = take_byte(in);
  }
  char *pieces = take_block(in, bytes);
  for (int64_t i = 0; pieces && i < count; i++) {
    memcpy(pieces + at, texts[i], (size_t)lengths[i]);
    ends[i] = at += lengths[i];
  }
  d->pieces = pieces;
  d->ends = ends;
  d->scores = scores;
  d->ids = ids;
  d->count = pieces ? count : 0;
}

static void take_merges(input *in, pgee_tokenizer_definition *d) {
  int64_t count = take_choice(in, 32);
  int32_t *merges = take_block(in, (int64_t)sizeof(int32_t) * 3 * count);
  for (int64_t i = 0; i < 3 * count; i++)
    merges[i] = take_integer(in);
  d->merges = merges;
  d->merge_count = count;
}

static void take_added(input *in, pgee_tokenizer_definition *d) {
  int64_t count = take_choice(in, MOST_ADDED + 1);
  pgee_added_token *list = take_block(in, count * (int64_t)sizeof *list);
  for (int64_t i = 0; list && i < count; i++) {
    int flags = take_byte(in);
    list[i] = (pgee_added_token){.id = flags & 32 ? take_integer(in) : -1,
                                 .normalized = flags & 1,
                                 .single_word = flags >> 1 & 1,
                                 .lstrip = flags >> 2 & 1,
                                 .rstrip = flags >> 3 & 1,
                                 .special = flags >> 4 & 1};
    list[i].text = take_text(in, 32, &list[i].bytes, 0);
  }
  d->added = list;
  d->added_count = list ? count : 0;
}

static const pgee_template_piece *take_template(input *in, int64_t *count) {
  *count = take_choice(in, 8);
  pgee_template_piece *list = take_block(in, *count * (int64_t)sizeof *list);
  for (int64_t i = 0; list && i < *count; i++)
    list[i] = (pgee_template_piece){take_byte(in) - 3, take_choice(in, 3)};
  return *count > 0 ? list : NULL;
}

/* The double array of a charsmap: page n of 256 units is a node, page 0 the root. */
typedef struct darts {
  uint32_t *units;
  uint32_t pages, most;
} darts;

static void put_entry(darts *d, const char *key, int64_t bytes, uint32_t value) {
  for (uint32_t page = 0, i = 0; i < bytes; i++) {
    uint32_t label = (uint8_t)key[i], at = page * 256 + label;
    if (d->units[at] == 0 || !(d->units[at] >> 10)) {
      if (d->pages == d->most)
        return;
      d->units[at] |= label | ((at ^ (d->pages++ * 256)) << 10);
    }
    page = (at ^ (d->units[at] >> 10)) / 256;
    if (i + 1 == bytes) {
      d->units[at] |= 1u << 8;
      d->units[page * 256] = value;
    }
  }
}

/* Entries of a key and what it becomes. */
static void take_charsmap(input *in, pgee_tokenizer_definition *d) {
  enum { PAGES = 24, STRINGS = 512 };
  int entries = take_choice(in, 8);
  if (entries == 0)
    return;
  int64_t trie = PAGES * 256 * 4, at = 0;
  char *blob = take_block(in, 4 + trie + STRINGS);
  darts a = {.units = take_block(in, trie), .pages = 1, .most = PAGES};
  for (int i = 0; i < entries; i++) {
    int64_t bytes, becomes;
    const char *key = take_text(in, 8, &bytes, 0), *text = take_text(in, 48, &becomes, 0);
    put_entry(&a, key, bytes, (uint32_t)at);
    memcpy(blob + 4 + trie + at, text, (size_t)becomes);
    at += becomes + 1;
  }
  for (int i = take_choice(in, 4); i > 0; i--) /* damage */
    a.units[take_byte(in) | take_byte(in) % PAGES << 8] = (uint32_t)take_integer(in);
  uint32_t head = (uint32_t)trie;
  memcpy(blob, &head, 4);
  memcpy(blob + 4, a.units, (size_t)trie);
  d->charsmap = blob;
  d->charsmap_bytes = 4 + trie + STRINGS;
}

int fuzz_definition(const uint8_t *bytes, size_t count) {
  input in = {.at = bytes, .end = bytes + count};
  int64_t length;
  int flags = take_byte(&in);
  pgee_tokenizer_definition d = {.model = flags % 4,
                                 .unk = take_integer(&in),
                                 .max_word_chars = take_integer(&in),
                                 .byte_fallback = flags >> 2 & 1,
                                 .fuse_unk = flags >> 3 & 1,
                                 .ignore_merges = flags >> 4 & 1,
                                 .trim_offsets = flags >> 5 & 1,
                                 .add_prefix_space = flags >> 6 & 1};
  d.prefix = take_text(&in, 80, &length, 1);
  d.suffix = take_text(&in, 16, &length, 1);
  take_pieces(&in, &d);
  take_merges(&in, &d);
  d.normalizers = take_steps(&in, KINDS(NORMALIZERS), &d.normalizer_count);
  d.pre_tokenizers = take_steps(&in, KINDS(PRE_TOKENIZERS), &d.pre_tokenizer_count);
  d.decoders = take_steps(&in, KINDS(DECODERS), &d.decoder_count);
  take_charsmap(&in, &d);
  take_added(&in, &d);
  d.single = take_template(&in, &d.single_count);
  d.pair = take_template(&in, &d.pair_count);
  use_definition(&d, &in);
  input_free(&in);
  return 0;
}
