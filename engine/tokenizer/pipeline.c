/* pipeline.c: from text to tokens by the steps and the model of any tokenizer. bert.c does the same faster for BERT's
 * tokenizers. */
#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "pipeline.h"
#include "unicode.h"

void pipeline_free(pipeline *r) {
  for (int i = 0; i < 3; i++)
    spanned_free(&r->texts[i]);
  for (int i = 0; i < 2; i++)
    ARRAY_FREE(&r->splits[i]);
  ARRAY_FREE(&r->edits);
  ARRAY_FREE(&r->pieces);
  model_scratch_free(&r->room);
}

/* Takes text[begin] to text[end - 1] as a spanned text: each byte gets the span of its character. Bytes that are not valid
 * UTF-8 become U+FFFD here, so that all later steps see valid UTF-8. */
static int take(spanned *out, const char *text, int64_t begin, int64_t end) {
  out->length = 0;
  out->origin = (int32_t)begin;
  TRY(spanned_reserve(out, end - begin));
  for (int64_t i = begin, size; i < end; i += size) {
    uint32_t c;
    size = utf8_decode(text + i, end - i, &c);
    TRY(spanned_put(out, c, (span){(int32_t)i, (int32_t)(i + size)}));
  }
  return PGEE_OK;
}

/* Cuts out the added tokens that are looked for in the normalized text, each as a split of its own. */
static int find_added(const pgee_tokenizer *t, pipeline *r) {
  const spanned *text = &r->texts[0];
  split_list *out = &r->splits[0];
  out->count = 0;
  added_search search = {.set = &t->added[1], .text = text->bytes, .bytes = text->length};
  for (added_match m; added_next(&search, &m); search.covered = m.end) {
    TRY(split_put(out, search.covered, m.begin, -1));
    TRY(split_put(out, m.begin, m.end, m.id));
  }
  return split_put(out, search.covered, text->length, -1);
}

static int cut_word(const pgee_tokenizer *t, const char *word, int64_t bytes, pipeline *r) {
  r->pieces.count = 0;
  switch (t->options->model) {
  case PGEE_WORDPIECE: return wordpiece_cut(&t->wordpiece, word, bytes, &r->room, &r->pieces);
  case PGEE_UNIGRAM: return unigram_cut(&t->unigram, word, bytes, &r->room, &r->pieces);
  }
  return bpe_cut(&t->bpe, word, bytes, &r->room, &r->pieces);
}

/* A piece may end behind its word: byte fallback of BPE also makes pieces of the prefix's bytes. */
static void put_piece(sink *s, const spanned *text, split word, model_piece p) {
  int32_t last = word.end - word.begin - 1, begin = text->spans[word.begin].begin, end = begin;
  if (p.begin < p.end) {
    begin = text->spans[word.begin + (p.begin < last ? p.begin : last)].begin;
    end = text->spans[word.begin + (p.end - 1 < last ? p.end - 1 : last)].end;
  }
  if (s->trim && s->offsets) {
    int64_t bytes = 0;
    const char *token = names_piece(&s->t->names, p.id, &bytes);
    if (s->t->options->model == PGEE_UNIGRAM && p.id == s->t->options->unk) { /* to Unigram an unknown token is its own text */
      token = text->bytes + word.begin + p.begin;
      bytes = p.end - p.begin; /* these lie in the word */
    }
    sink_trim(s, &begin, &end, token, bytes);
  }
  sink_put(s, p.id, begin, end);
}

static int put_word(sink *s, pipeline *r, split word) {
  const spanned *text = &r->texts[0];
  if (word.id >= 0) {
    int32_t begin = text->spans[word.begin].begin, end = text->spans[word.end - 1].end;
    if (s->trim && s->offsets)
      sink_trim(s, &begin, &end, text->bytes + word.begin, word.end - word.begin);
    sink_put(s, word.id, begin, end);
    return PGEE_OK;
  }
  TRY(cut_word(s->t, text->bytes + word.begin, word.end - word.begin, r));
  for (int64_t i = 0; i < r->pieces.count; i++)
    put_piece(s, text, word, r->pieces.list[i]);
  return PGEE_OK;
}

int pipeline_put(sink *s, pipeline *r, const char *text, int64_t begin, int64_t end) {
  TRY(take(&r->texts[0], text, begin, end));
  TRY(normalizers_run(s->t, r));
  TRY(find_added(s->t, r));
  if (r->texts[0].length > INT32_MAX / 8)
    return fail(PGEE_ARGUMENT, "a text of %lld bytes once normalized, expected at most %d", (long long)r->texts[0].length,
                INT32_MAX / 8);
  TRY(pre_tokenizers_run(s->t, r));
  for (int64_t i = 0; i < r->splits[0].count; i++) {
    TRY(put_word(s, r, r->splits[0].list[i]));
    s->word += !s->in_words;
  }
  return PGEE_OK;
}
