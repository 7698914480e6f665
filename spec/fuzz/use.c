/* use.c: what targets do with a tokenizer. See targets.h. */
#include <string.h>

#include "targets.h"

enum { MOST_TEXT = 4096 };

static int32_t *array(input *in, int64_t count) { return take_block(in, count * (int64_t)sizeof(int32_t)); }

static void check_encoding(const pgee_tokenizer *t, const pgee_encoding *e, const pgee_text *a, const pgee_text *b) {
  PROMISED(e->length >= 0 && e->length <= e->capacity && e->dropped >= 0);
  for (int64_t i = 0; i < e->length; i++) {
    PROMISED(e->ids[i] >= 0 && e->ids[i] < pgee_tokenizer_ids(t));
    PROMISED(e->sequences[i] >= 0 && e->sequences[i] <= 2);
    const pgee_text *of = e->sequences[i] == 2 ? b : a;
    PROMISED(e->sequences[i] != 2 || b);
    PROMISED(e->offsets[2 * i] >= 0 && e->offsets[2 * i + 1] <= of->count);
  }
}

/* The text of the ids, asked for first without room. */
static void use_decode(const pgee_tokenizer *t, input *in, const int32_t *ids, int64_t count) {
  for (int special = 0; special < 2; special++) {
    int64_t bytes = 0, again = 0;
    if (pgee_tokenizer_decode(t, ids, count, special, NULL, 0, &bytes) != PGEE_OK)
      continue;
    char *out = take_block(in, bytes);
    PROMISED(!out || pgee_tokenizer_decode(t, ids, count, special, out, bytes, &again) == PGEE_OK);
    PROMISED(!out || again == bytes);
  }
}

uint32_t use_tokenizer(const pgee_tokenizer *t, input *in) {
  uint32_t digest = 1;
  int flags = take_byte(in);
  pgee_encode_options o = {.max_tokens = flags & 1 ? take_byte(in) : INT32_MAX,
                           .truncate = (flags >> 1) % 3,
                           .bare = flags >> 3 & 1,
                           .characters = flags >> 4 & 1};
  pgee_text texts[2] = {{0}};
  int64_t ends[2] = {0};
  for (int i = 0; i < 2; i++)
    texts[i].bytes = take_text(in, MOST_TEXT, &texts[i].count, 0);
  if (flags >> 5 & 1) { /* in two words */
    ends[0] = texts[0].count / 2;
    ends[1] = texts[0].count;
    texts[0].word_ends = ends;
    texts[0].words = 2;
  }
  const pgee_text *second = flags >> 6 & 1 ? &texts[1] : NULL;
  int64_t capacity = texts[0].count + texts[1].count + pgee_tokenizer_special_count(t, second != NULL);
  for (int tries = 0; tries < 2; tries++) {
    pgee_encoding e = {.ids = array(in, capacity),
                       .types = array(in, capacity),
                       .offsets = array(in, 2 * capacity),
                       .sequences = array(in, capacity),
                       .words = array(in, capacity),
                       .capacity = capacity};
    if (!e.words)
      return 0;
    int status = pgee_tokenizer_encode_texts(t, &e, &texts[0], second, &o);
    if (status == PGEE_OK) {
      check_encoding(t, &e, &texts[0], second);
      use_decode(t, in, e.ids, e.length);
      for (int64_t i = 0; i < e.length; i++)
        digest = digest * 31 + (uint32_t)e.ids[i];
      break;
    }
    if (e.length <= capacity || e.length > 1 << 20)
      break;
    capacity = e.length;
  }
  for (int64_t id = -1; id <= pgee_tokenizer_ids(t) && id < 4096; id++) {
    int64_t bytes;
    const char *piece = pgee_tokenizer_piece(t, id, &bytes);
    PROMISED(piece ? pgee_tokenizer_id(t, piece, bytes) >= -1 : bytes == 0);
  }
  return digest;
}

void use_definition(const pgee_tokenizer_definition *d, input *in) {
  pgee_tokenizer *t = NULL, *again = NULL;
  pgee_tensor *image = NULL;
  int status = pgee_tokenizer_new(&t, d);
  PROMISED((status == PGEE_OK) == (t != NULL));
  if (!t) {
    PROMISED(pgee_message()[0]);
    return;
  }
  input same = *in;
  uint32_t digest = use_tokenizer(t, in);
  PROMISED(pgee_tokenizer_image(&image, t) == PGEE_OK && pgee_tokenizer_from_image(&again, image) == PGEE_OK);
  same.count = 0;
  PROMISED(use_tokenizer(again, &same) == digest);
  input_free(&same);
  pgee_tokenizer_free(again);
  pgee_tensor_free(image);
  pgee_tokenizer_free(t);
}
