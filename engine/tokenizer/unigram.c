/* unigram.c: finds the best path through a word. See unigram.h; unigram_build.c makes the tables. */
#include "unigram.h"

#include <stddef.h>

#include "engine/perigee.h"
#include "engine/base/status.h"

/* The best path to a byte of the word. */
typedef struct step {
  double score;
  int32_t begin; /* where its last piece begins; -1: there is no path yet */
  int32_t id;
} step;

static inline const unigram_unit *child(const unigram *m, const unigram_unit *unit, uint8_t byte) {
  uint32_t at = unit->base_label >> 8 ^ byte;
  if (at >= m->unit_count)
    return NULL;
  unit = m->units + at;
  return (uint8_t)unit->base_label == byte ? unit : NULL;
}

static int32_t find(const unigram *m, const char *s, int64_t bytes) {
  const unigram_unit *unit = m->units;
  for (int64_t i = 0; i < bytes; i++)
    if (!(unit = child(m, unit, (uint8_t)s[i])))
      return -1;
  return unit->id;
}

static inline void offer(step *to, double score, int64_t begin, int32_t id) {
  if (to->begin < 0 || score > to->score)
    *to = (step){score, (int32_t)begin, id};
}

static inline int64_t character_bytes(const char *s, int64_t bytes) {
  uint8_t first = (uint8_t)s[0];
  int64_t size = first < 0xC0 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  return size < bytes ? size : bytes;
}

static int no_unknown(const char *word, int64_t at, int64_t size) {
  return fail(PGEE_ARGUMENT, "the character '%.*s' is no piece, and the vocabulary has no unknown token", (int)size, word + at);
}

/* Offers the pieces that begin at word[at], and the unknown token if the character at word[at] alone is not a piece. */
static int offer_all(const unigram *m, const char *word, int64_t at, int64_t bytes, step *steps, int64_t size) {
  const unigram_unit *unit = m->units;
  double score = steps[at].score;
  int known = 0;
  for (int64_t i = at; i < bytes && (unit = child(m, unit, (uint8_t)word[i]));) {
    i++;
    if ((uint32_t)unit->id < (uint64_t)m->count) {
      known |= i - at == size;
      offer(steps + i, m->scores[unit->id] + score, at, unit->id);
    }
  }
  if (known)
    return PGEE_OK;
  step *to = steps + at + size;
  score += m->head->unknown;
  if (m->head->unk < 0 && (to->begin < 0 || score > to->score))
    return no_unknown(word, at, size);
  offer(to, score, at, m->head->unk);
  return PGEE_OK;
}

/* Puts word[begin] to word[end - 1], which is unknown, last byte first. */
static int put_unknown(const unigram *m, const char *word, int64_t begin, int64_t end, model_pieces *out) {
  const unigram_head *h = m->head;
  int32_t id = find(m, word + begin, end - begin);
  int fallback = id < 0 && h->fallback;
  for (int64_t i = begin; i < end && fallback; i++)
    fallback = h->bytes[(uint8_t)word[i]] >= 0;
  if (!fallback)
    return model_put(out, id < 0 ? h->unk : id, begin, end);
  for (int64_t i = end; i > begin; i--)
    TRY(model_put(out, h->bytes[(uint8_t)word[i - 1]], begin, end));
  return PGEE_OK;
}

static int put_backward(const unigram *m, const char *word, int64_t bytes, const step *steps, model_pieces *out) {
  int64_t unknown = -1; /* where a run of unknowns ends */
  for (int64_t end = bytes; end > 0; end = steps[end].begin) {
    const step *s = steps + end;
    if (s->id == m->head->unk) {
      unknown = unknown < 0 ? end : unknown;
      if (s->begin == 0)
        TRY(put_unknown(m, word, 0, unknown, out));
      continue;
    }
    if (unknown >= 0)
      TRY(put_unknown(m, word, end, unknown, out));
    unknown = -1;
    TRY(model_put(out, s->id, s->begin, end));
  }
  return PGEE_OK;
}

static void reverse(model_piece *list, int64_t count) {
  for (int64_t i = 0, j = count - 1; i < j; i++, j--) {
    model_piece p = list[i];
    list[i] = list[j];
    list[j] = p;
  }
}

int unigram_cut(const unigram *m, const char *word, int64_t bytes, model_scratch *room, model_pieces *out) {
  step *steps = model_scratch_room(room, (bytes + 1) * (int64_t)sizeof *steps);
  if (!steps)
    return PGEE_MEMORY;
  for (int64_t i = 1; i <= bytes; i++)
    steps[i].begin = -1;
  steps[0].score = 0;
  for (int64_t at = 0, size; at < bytes; at += size) {
    size = character_bytes(word + at, bytes - at);
    TRY(offer_all(m, word, at, bytes, steps, size));
  }
  int64_t first = out->count;
  TRY(put_backward(m, word, bytes, steps, out));
  if (out->count > first) /* else there may be no list */
    reverse(out->list + first, out->count - first);
  return PGEE_OK;
}

int unigram_open(unigram *m, const image *from) {
  int64_t head, units, scores;
  m->head = image_section(from, IMAGE_UNIGRAM, &head);
  m->units = image_section(from, IMAGE_UNIGRAM_1, &units);
  m->scores = image_section(from, IMAGE_UNIGRAM_2, &scores);
  m->unit_count = units / (int64_t)sizeof *m->units;
  m->count = scores / (int64_t)sizeof *m->scores;
  if (head != sizeof *m->head || m->unit_count < 1 || m->count < 1)
    return fail(PGEE_FORMAT,
                "the tables of Unigram in the image of a tokenizer have %lld, %lld and %lld bytes, expected %d, and a unit and a "
                "score or more",
                (long long)head, (long long)units, (long long)scores, (int)sizeof *m->head);
  return PGEE_OK;
}
