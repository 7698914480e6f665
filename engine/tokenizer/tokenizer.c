/* tokenizer.c: a tokenizer is an image and pointers into it: opening one, and what it knows. See tokenizer.h. */
#include "tokenizer.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "engine/data/tensor.h"
#include "unicode.h"

/* ---- Opening an image ------------------------------------------------------------------------------------------------------ */

static int broken(const char *what) { return fail(PGEE_FORMAT, "the image of a tokenizer is broken: %s", what); }

int tokenizer_is_utf8(const char *text, int64_t bytes) {
  uint32_t c;
  for (int64_t i = 0, size; i < bytes; i += size) {
    size = utf8_decode(text + i, bytes - i, &c);
    if (c == UNICODE_REPLACEMENT && size == 1)
      return 0;
  }
  return 1;
}

static int open_options(pgee_tokenizer *t) {
  int64_t bytes;
  const tokenizer_options *o = image_section(&t->image, IMAGE_OPTIONS, &bytes);
  if (bytes != sizeof *o)
    return broken("its options are not there");
  if (o->model < PGEE_WORDPIECE || o->model > PGEE_BPE || o->size < 0 || o->max_word_chars < 0 || o->prefix[MAX_PREFIX - 1])
    return broken("its options are out of range");
  t->options = o;
  t->left = image_section(&t->image, IMAGE_LEFT, &bytes) != NULL && bytes > 0;
  return PGEE_OK;
}

static int open_string(const char **out, int64_t *bytes, uint32_t begin, uint32_t length, const char *strings, int64_t count) {
  if (length > count || begin > count - length)
    return broken("a string of a step");
  *out = length > 0 ? strings + begin : ""; /* without strings there is no section to point into */
  *bytes = length;
  return tokenizer_is_utf8(*out, length) ? PGEE_OK : broken("a string of a step");
}

static int needs_pattern(const step *s) { return (s->kind == PGEE_STEP_SPLIT || s->kind == PGEE_STEP_REPLACE) && s->a; }

int steps_open(pgee_tokenizer *t, steps *out, int64_t first, int64_t count) {
  int64_t stored_bytes, string_bytes;
  const stored_step *stored = image_section(&t->image, IMAGE_STEPS, &stored_bytes);
  const char *strings = image_section(&t->image, IMAGE_STRINGS, &string_bytes);
  if (count < 0 || count > MAX_STEPS || first + count > stored_bytes / (int64_t)sizeof *stored)
    return broken("its steps are not there");
  if (count == 0)
    return PGEE_OK;
  if (!(out->list = mem_array(count, sizeof *out->list)))
    return PGEE_MEMORY;
  out->count = count;
  for (int64_t i = 0; i < count; i++) {
    stored_step from = stored[first + i];
    step *s = &out->list[i];
    *s = (step){.kind = from.kind, .a = from.a, .b = from.b, .c = from.c, .d = from.d};
    TRY(open_string(&s->text, &s->text_bytes, from.text, from.text_bytes, strings, string_bytes));
    TRY(open_string(&s->more, &s->more_bytes, from.more, from.more_bytes, strings, string_bytes));
    if (needs_pattern(s))
      TRY(pattern_new(&s->pattern, s->text, s->text_bytes));
    if ((s->kind == PGEE_STEP_METASPACE || s->kind == PGEE_STEP_CHAR_DELIMITER) && (uint32_t)s->a > 0x10FFFF)
      return broken("a character of a step");
    if (s->kind == PGEE_STEP_FIXED_LENGTH && s->a < 1)
      return broken("the length of a step");
    if (s->kind == PGEE_STEP_PRECOMPILED)
      TRY(charsmap_open(&t->charsmap, &t->image));
  }
  return PGEE_OK;
}

static int open_all_steps(pgee_tokenizer *t) {
  const int32_t *n = t->options->step_counts;
  TRY(steps_open(t, &t->normalizers, 0, n[0]));
  TRY(steps_open(t, &t->pre_tokenizers, n[0], n[1]));
  return steps_open(t, &t->decoders, (int64_t)n[0] + n[1], n[2]);
}

static void measure(tokenizer_template *s, int pair) {
  int a = 0, b = 0;
  s->plain = 1;
  for (int64_t i = 0; i < s->count; i++) {
    int32_t id = s->list[i].id;
    s->special += id >= 0;
    s->before += id >= 0 && a == 0;
    s->between += id >= 0 && a == 1 && b == 0;
    a += id == PGEE_TEXT_A;
    b += id == PGEE_TEXT_B;
    s->plain = s->plain && (id != PGEE_TEXT_B || a == 1);
  }
  s->plain = s->plain && a == 1 && b == pair;
}

static int open_templates(pgee_tokenizer *t) {
  int64_t bytes, at = 0;
  const pgee_template_piece *list = image_section(&t->image, IMAGE_TEMPLATES, &bytes);
  for (int pair = 0; pair < 2; pair++) {
    int64_t count = t->options->template_counts[pair];
    if (count < 0 || count > MAX_TEMPLATE || at + count > bytes / (int64_t)sizeof *list)
      return broken("its templates are not there");
    t->templates[pair] = (tokenizer_template){.list = list + at, .count = count};
    for (int64_t i = at; i < at + count; i++)
      if (list[i].id < PGEE_TEXT_B || list[i].id >= t->names.count || (list[i].id == PGEE_TEXT_B && !pair))
        return broken("an id of its templates");
    measure(&t->templates[pair], pair);
    at += count;
  }
  return PGEE_OK;
}

static int open_model(pgee_tokenizer *t) {
  const tokenizer_options *o = t->options;
  switch (o->model) {
  case PGEE_WORDPIECE:
    t->wordpiece.inside = (uint32_t)o->inside;
    t->wordpiece.unk = o->unk;
    t->wordpiece.max_chars = o->max_word_chars;
    return wordpiece_open(&t->wordpiece, &t->image);
  case PGEE_UNIGRAM: return unigram_open(&t->unigram, &t->image);
  }
  return bpe_open(&t->bpe, &t->image, &t->names);
}

/* BERT's own way is for BERT's own frame. */
static void choose_way(pgee_tokenizer *t) {
  const step *n = t->normalizers.list, *p = t->pre_tokenizers.list;
  t->fast = t->options->model == PGEE_WORDPIECE && !t->options->trim_offsets && t->normalizers.count <= 1 &&
            t->pre_tokenizers.count == 1 && p->kind == PGEE_STEP_BERT_PRE_TOKENIZER &&
            (!n || n->kind == PGEE_STEP_BERT_NORMALIZER);
  if (t->fast && n)
    t->bert = (bert_options){n->a, n->b, n->c, n->d};
  ascii_table_fill(&t->ascii, &t->bert);
}

static int open_all(pgee_tokenizer *t) {
  TRY(names_open(&t->names, &t->image));
  TRY(open_model(t));
  TRY(added_open(&t->added[0], &t->image, 0));
  TRY(added_open(&t->added[1], &t->image, 1));
  TRY(open_templates(t));
  choose_way(t);
  return PGEE_OK;
}

int tokenizer_open(pgee_tokenizer **out, pgee_tensor *tensor) {
  pgee_tokenizer *t = mem_new(sizeof *t);
  if (!t) {
    pgee_tensor_free(tensor);
    return PGEE_MEMORY;
  }
  t->tensor = tensor;
  int status = image_open(&t->image, tensor->data, tensor->shape[0]);
  if (status == PGEE_OK)
    status = open_options(t);
  if (status == PGEE_OK)
    status = open_all_steps(t);
  if (status == PGEE_OK)
    status = open_all(t);
  if (status == PGEE_OK)
    *out = t;
  else
    pgee_tokenizer_free(t);
  return status;
}

void steps_free(steps *s) {
  for (int64_t i = 0; i < s->count; i++)
    pattern_free(s->list[i].pattern);
  mem_free(s->list);
}

void pgee_tokenizer_free(pgee_tokenizer *t) {
  if (!t)
    return;
  steps_free(&t->normalizers);
  steps_free(&t->pre_tokenizers);
  steps_free(&t->decoders);
  pgee_tensor_free(t->tensor);
  mem_free(t);
}

int pgee_tokenizer_from_image(pgee_tokenizer **out, const pgee_tensor *tensor) {
  NEED(out, tensor);
  TRY(tensor_expect(tensor, "the image of a tokenizer", PGEE_U8, 1, -1, -1));
  TRY(tensor_expect_memory(tensor, "the image of a tokenizer"));
  if (tensor->stride != 1)
    return fail(PGEE_ARGUMENT, "the image of a tokenizer is a view whose bytes lie apart");
  return tokenizer_open(out, tensor_hold(tensor));
}

int pgee_tokenizer_image(pgee_tensor **out, const pgee_tokenizer *t) {
  NEED(out, t);
  *out = tensor_hold(t->tensor);
  return PGEE_OK;
}

/* ---- What a tokenizer knows ------------------------------------------------------------------------------------------------ */

int64_t pgee_tokenizer_model(const pgee_tokenizer *t) { return t ? t->options->model : 0; }
int64_t pgee_tokenizer_size(const pgee_tokenizer *t) { return t ? t->options->size : 0; }
int64_t pgee_tokenizer_ids(const pgee_tokenizer *t) { return t ? t->names.count : 0; }
int64_t pgee_tokenizer_special_count(const pgee_tokenizer *t, int pair) { return t ? t->templates[pair != 0].special : 0; }

int pgee_tokenizer_specials(const pgee_tokenizer *t, int32_t *out) {
  NEED(t, out);
  memcpy(out, t->options->specials, sizeof t->options->specials);
  return PGEE_OK;
}

int pgee_tokenizer_left(const pgee_tokenizer *t) { return t && t->left; }

const char *pgee_tokenizer_prefix(const pgee_tokenizer *t) { return t ? t->options->prefix : NULL; }

const char *pgee_tokenizer_piece(const pgee_tokenizer *t, int64_t id, int64_t *bytes) {
  const char *text = t && bytes ? names_text(&t->names, id, bytes, NULL) : NULL;
  if (!text && bytes)
    *bytes = 0;
  return text;
}

int32_t pgee_tokenizer_id(const pgee_tokenizer *t, const char *text, int64_t bytes) {
  if (!t || !text || bytes < 0)
    return -1;
  int32_t id = added_id(&t->image, text, bytes);
  return id >= 0 ? id : names_id(&t->names, text, bytes);
}
