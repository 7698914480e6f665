/* tokenizer.c: opens the image of a tokenizer, and answers questions about it. See tokenizer.h. */
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
    if (c == UTF8_REPLACEMENT && size == 1)
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

static int open_all_steps(pgee_tokenizer *t) {
  const int32_t *n = t->options->step_counts;
  TRY(step_list_open(&t->normalizers, &t->charsmap, &t->image, 0, n[0]));
  TRY(step_list_open(&t->pre_tokenizers, &t->charsmap, &t->image, n[0], n[1]));
  return step_list_open(&t->decoders, &t->charsmap, &t->image, (int64_t)n[0] + n[1], n[2]);
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

/* Decides whether bert.c can encode. */
static void choose_way(pgee_tokenizer *t) {
  const step *n = t->normalizers.list, *p = t->pre_tokenizers.list;
  t->fast = t->options->model == PGEE_WORDPIECE && !t->options->trim_offsets && t->normalizers.count <= 1 &&
            t->pre_tokenizers.count == 1 && p->kind == PGEE_STEP_BERT_PRE_TOKENIZER &&
            (!n || n->kind == PGEE_STEP_BERT_NORMALIZER);
  if (t->fast && n)
    t->bert = (bert_options){n->a, n->b, n->c, n->d};
  bert_ascii_fill(&t->ascii, &t->bert);
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

void pgee_tokenizer_free(pgee_tokenizer *t) {
  if (!t)
    return;
  step_list_free(&t->normalizers);
  step_list_free(&t->pre_tokenizers);
  step_list_free(&t->decoders);
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
