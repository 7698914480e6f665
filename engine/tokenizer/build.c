/* build.c: builds the image of a tokenizer from a definition. See tokenizer.h. */
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "engine/data/tensor.h"
#include "definition.h"
#include "pipeline.h"
#include "tokenizer.h"
#include "unicode.h"

/* ---- Steps, templates and the model ---------------------------------------------------------------------------------------- */

static uint32_t put_string(char *strings, uint32_t *at, const char *text, int64_t bytes) {
  uint32_t begin = *at;
  if (bytes > 0)
    memcpy(strings + begin, text, (size_t)bytes);
  *at += (uint32_t)bytes;
  return begin;
}

static int put_steps(image_writer *w, const pgee_tokenizer_definition *d) {
  const pgee_tokenizer_step *lists[] = {d->normalizers, d->pre_tokenizers, d->decoders};
  const int64_t counts[] = {d->normalizer_count, d->pre_tokenizer_count, d->decoder_count};
  step_stored stored[3 * STEP_MAX];
  int64_t bytes = 0, n = 0;
  uint32_t at = 0;
  for (int i = 0; i < 3; i++)
    for (int64_t j = 0; j < counts[i]; j++)
      bytes += lists[i][j].text_bytes + lists[i][j].more_bytes;
  char *strings = image_new(w, IMAGE_STRINGS, bytes);
  if (!strings)
    return PGEE_MEMORY;
  for (int i = 0; i < 3; i++)
    for (int64_t j = 0; j < counts[i]; j++) {
      const pgee_tokenizer_step *s = &lists[i][j];
      step_stored to = {.kind = s->kind, .a = s->a, .b = s->b, .c = s->c, .d = s->d};
      to.text = put_string(strings, &at, s->text, s->text_bytes);
      to.text_bytes = (uint32_t)s->text_bytes;
      to.more = put_string(strings, &at, s->more, s->more_bytes);
      to.more_bytes = (uint32_t)s->more_bytes;
      stored[n++] = to;
    }
  return image_put(w, IMAGE_STEPS, stored, n * (int64_t)sizeof *stored);
}

static int put_templates(image_writer *w, const pgee_tokenizer_definition *d, tokenizer_options *o) {
  static const pgee_template_piece one[] = {{PGEE_TEXT_A, 0}}, two[] = {{PGEE_TEXT_A, 0}, {PGEE_TEXT_B, 1}};
  const pgee_template_piece *lists[] = {d->single ? d->single : one, d->pair ? d->pair : two};
  pgee_template_piece all[2 * MAX_TEMPLATE];
  int64_t n = 0;
  o->template_counts[0] = d->single ? (int32_t)d->single_count : 1;
  o->template_counts[1] = d->pair ? (int32_t)d->pair_count : 2;
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < o->template_counts[i]; j++)
      all[n++] = lists[i][j];
  return image_put(w, IMAGE_TEMPLATES, all, n * (int64_t)sizeof *all);
}

static int put_model(image_writer *w, const pgee_tokenizer_definition *d, const model_vocabulary *v, tokenizer_options *o) {
  switch (d->model) {
  case PGEE_WORDPIECE: return wordpiece_build(w, v, d->prefix, &o->inside);
  case PGEE_UNIGRAM: return unigram_build(w, v, d->scores, d->unk, d->byte_fallback);
  }
  return bpe_build(w, v,
                   &(bpe_options){.unk = d->unk,
                                  .byte_fallback = d->byte_fallback,
                                  .fuse_unk = d->fuse_unk,
                                  .ignore_merges = d->ignore_merges,
                                  .prefix = d->prefix,
                                  .suffix = d->suffix,
                                  .merges = d->merges,
                                  .merge_count = d->merge_count});
}

/* ---- Added tokens ---------------------------------------------------------------------------------------------------------- */

/* Normalizes the text of an added token. `kept` gets the memory of the result. */
static int normalize_added(const pgee_tokenizer *t, pipeline *r, const pgee_added_token *a, names_added *out,
                           model_scratch *kept) {
  spanned *text = &r->texts[0];
  text->length = 0;
  text->origin = 0;
  for (int64_t i = 0, size; i < a->bytes; i += size) {
    uint32_t c;
    size = utf8_decode(a->text + i, a->bytes - i, &c);
    TRY(spanned_put(text, c, (span){(int32_t)i, (int32_t)(i + size)}));
  }
  TRY(normalizers_run(t, r));
  char *copy = model_scratch_room(kept, text->length + 1);
  if (!copy)
    return PGEE_MEMORY;
  if (text->length > 0)
    memcpy(copy, text->bytes, (size_t)text->length);
  out->text = copy;
  out->bytes = text->length;
  return PGEE_OK;
}

/* The texts of added tokens: as given, as they are looked for and as decoding shows them; `kept` is the memory of normalized
 * texts. */
typedef struct added_texts {
  added_token *tokens;
  names_added *given, *looked_for, *shown;
  model_scratch *kept; /* [count] */
  int32_t *ids;        /* [count] */
  int64_t count;
} added_texts;

static void added_texts_free(added_texts *a) {
  for (int64_t i = 0; a->kept && i < a->count; i++)
    model_scratch_free(&a->kept[i]);
  mem_free(a->tokens);
  mem_free(a->given);
  mem_free(a->looked_for);
  mem_free(a->shown);
  mem_free(a->kept);
  mem_free(a->ids);
}

/* Numbers the added tokens that have no id: the id of the piece with the same text (the last one), else from the size of the
 * vocabulary on. */
static int number_added(added_texts *a, const model_vocabulary *v, trie_builder *b) {
  for (int64_t i = 0; i < a->count; i++)
    if (a->given[i].bytes > 0)
      TRY(trie_insert(b, a->given[i].text, a->given[i].bytes, (int32_t)i));
  trie t = trie_of(b);
  for (int64_t i = 0; i < v->count; i++) {
    int64_t begin = i > 0 ? v->ends[i - 1] : 0, length = 0;
    int32_t found = trie_longest(&t, TRIE_ROOT, v->bytes + begin, v->ends[i] - begin, &length);
    if (found >= 0 && length == v->ends[i] - begin && a->tokens[found].id < 0)
      a->ids[found] = v->ids ? v->ids[i] : (int32_t)i;
  }
  int32_t next = (int32_t)v->count;
  for (int64_t i = 0; i < a->count; i++) {
    int64_t length = 0;
    int32_t first =
        a->given[i].bytes > 0 ? trie_longest(&t, TRIE_ROOT, a->given[i].text, a->given[i].bytes, &length) : (int32_t)i;
    if (a->tokens[i].id >= 0)
      continue;
    if (a->ids[first] < 0)
      a->ids[first] = next++;
    a->ids[i] = a->ids[first];
    a->tokens[i].id = a->given[i].id = a->ids[i];
  }
  return PGEE_OK;
}

/* Whether decoding treats the token as special: whether the shown text is the text of a special token, as in the tokenizers
 * package. */
static int is_special(const trie *contents, const names_added *shown, const pgee_tokenizer_definition *d) {
  int64_t length = 0;
  int32_t found = shown->bytes > 0 ? trie_longest(contents, TRIE_ROOT, shown->text, shown->bytes, &length) : -1;
  return found >= 0 && length == shown->bytes && d->added[found].special;
}

static int fill_added(added_texts *a, const pgee_tokenizer *t, const pgee_tokenizer_definition *d, const model_vocabulary *v,
                      pipeline *r) {
  a->count = d->added_count;
  a->tokens = mem_array(a->count, sizeof *a->tokens);
  a->given = a->tokens ? mem_array(a->count, sizeof *a->given) : NULL;
  a->looked_for = a->given ? mem_array(a->count, sizeof *a->looked_for) : NULL;
  a->shown = a->looked_for ? mem_array(a->count, sizeof *a->shown) : NULL;
  a->kept = a->shown ? mem_array(a->count, sizeof *a->kept) : NULL;
  a->ids = a->kept ? mem_array(a->count, sizeof *a->ids) : NULL;
  if (!a->ids)
    return PGEE_MEMORY;
  for (int64_t i = 0; i < a->count; i++) {
    const pgee_added_token *from = &d->added[i];
    a->tokens[i] = (added_token){.id = from->id,
                                 .single_word = from->single_word != 0,
                                 .lstrip = from->lstrip != 0,
                                 .rstrip = from->rstrip != 0,
                                 .normalized = from->normalized != 0};
    a->given[i] = (names_added){from->bytes > 0 ? from->text : "", from->bytes, from->id, from->special};
    a->ids[i] = from->id;
  }
  trie_builder b;
  TRY(trie_new(&b));
  int status = number_added(a, v, &b);
  trie contents = trie_of(&b);
  for (int64_t i = 0; status == PGEE_OK && i < a->count; i++) {
    const pgee_added_token *from = &d->added[i];
    a->shown[i] = a->given[i];
    if (from->normalized || from->shown_normalized)
      status = normalize_added(t, r, from, &a->shown[i], &a->kept[i]);
    a->shown[i].special = is_special(&contents, &a->shown[i], d);
    a->looked_for[i] = from->normalized ? a->shown[i] : a->given[i];
  }
  trie_free(&b);
  return status;
}

/* Writes the added tokens and the names. Normalizes texts of added tokens with the normalizers, which are in the image already. */
static int put_added(image_writer *w, const pgee_tokenizer_definition *d, const model_vocabulary *v, const tokenizer_options *o) {
  pgee_tokenizer t = {.options = o};
  added_texts a = {0};
  pipeline r = {0};
  TRY(image_finish(w));
  TRY(image_open(&t.image, w->bytes.list, w->bytes.count));
  int status = step_list_open(&t.normalizers, &t.charsmap, &t.image, 0, o->step_counts[0]);
  if (status == PGEE_OK)
    status = fill_added(&a, &t, d, v, &r);
  step_list_free(&t.normalizers);
  pipeline_free(&r);
  if (status == PGEE_OK)
    status = names_build(w, v, a.shown, a.count);
  if (status == PGEE_OK)
    status = added_build(w, a.tokens, a.looked_for, a.given, a.count);
  added_texts_free(&a);
  return status;
}

/* ---- The whole image ------------------------------------------------------------------------------------------------------- */

/* The number of ids that have a text. */
static int32_t count_names(const names *n) {
  int64_t size = 0, bytes;
  for (int64_t i = 0; i < n->count; i++)
    size += names_text(n, i, &bytes, NULL) != NULL;
  return (int32_t)size;
}

/* Sets the options that depend on the names. */
static int look_up(image_writer *w, const pgee_tokenizer_definition *d, tokenizer_options *o) {
  pgee_tokenizer t = {0};
  TRY(image_finish(w));
  TRY(image_open(&t.image, w->bytes.list, w->bytes.count));
  TRY(names_open(&t.names, &t.image));
  o->size = count_names(&t.names);
  for (int i = 0; i < 5; i++) {
    const char *text = d->specials ? d->specials[i] : NULL;
    int32_t id = d->special_ids ? d->special_ids[i] : -1;
    o->specials[i] = id >= 0 ? id : text ? pgee_tokenizer_id(&t, text, (int64_t)strlen(text)) : -1;
  }
  return PGEE_OK;
}

static int write_image(image_writer *w, const pgee_tokenizer_definition *d) {
  model_vocabulary v = {d->pieces, d->ends, d->ids, d->count};
  tokenizer_options o = {
      .model = d->model,
      .unk = d->unk,
      .max_word_chars = d->max_word_chars,
      .inside = -1,
      .trim_offsets = d->trim_offsets != 0,
      .add_prefix_space = d->add_prefix_space != 0,
      .step_counts = {(int32_t)d->normalizer_count, (int32_t)d->pre_tokenizer_count, (int32_t)d->decoder_count}};
  memcpy(o.prefix, d->prefix ? d->prefix : "", strlen(d->prefix ? d->prefix : ""));
  TRY(put_steps(w, d));
  TRY(put_templates(w, d, &o));
  if (d->charsmap_bytes > 0)
    TRY(charsmap_build(w, d->charsmap, d->charsmap_bytes));
  TRY(put_added(w, d, &v, &o));
  TRY(put_model(w, d, &v, &o));
  if (d->left)
    TRY(image_put(w, IMAGE_LEFT, &d->left, sizeof d->left));
  TRY(look_up(w, d, &o));
  TRY(image_put(w, IMAGE_OPTIONS, &o, sizeof o));
  return image_finish(w);
}

int pgee_tokenizer_new(pgee_tokenizer **out, const pgee_tokenizer_definition *definition) {
  NEED(out, definition);
  TRY(definition_check(definition));
  image_writer w = {0};
  pgee_tensor *tensor = NULL;
  int status = write_image(&w, definition);
  if (status == PGEE_OK)
    status = pgee_tensor_new(&tensor, PGEE_U8, 1, &w.bytes.count);
  if (status == PGEE_OK)
    memcpy(tensor->data, w.bytes.list, (size_t)w.bytes.count);
  image_writer_free(&w);
  return status == PGEE_OK ? tokenizer_open(out, tensor) : status;
}
