/* encode.c: targets that encode and decode by tokenizers of a few kinds, and by images. */
#include <string.h>

#include "targets.h"

/* ---- Images ---------------------------------------------------------------------------------------------------------------- */

int fuzz_image(const uint8_t *bytes, size_t count) {
  input in = {.at = bytes, .end = bytes + count};
  int64_t said = 256 * take_byte(&in) + take_byte(&in), left = in.end - in.at;
  int64_t words = said < left ? said : left, rest = left - words;
  pgee_tensor *image = NULL;
  pgee_tokenizer *t = NULL;
  if (rest == 0 || pgee_tensor_new(&image, PGEE_U8, 1, &rest) != PGEE_OK)
    return 0;
  memcpy(pgee_tensor_data(image), in.at + words, (size_t)rest);
  if (pgee_tokenizer_from_image(&t, image) == PGEE_OK) {
    in.end = in.at + words;
    use_tokenizer(t, &in);
    pgee_tokenizer_free(t);
  }
  pgee_tensor_free(image);
  input_free(&in);
  return 0;
}

/* ---- Built-in tokenizers ----------------------------------------------------------------------------------------------------- */

static const char *const PIECES[] = {"[UNK]", "[CLS]",  "[SEP]",   "a",      "b",       "e", "ab",     "##a", "##b",
                                     "##e",   "\u2581", "\u2581a", "\u0120", "\u0120a", ".", "\u4E2D", "1",   "\u00E9"};
enum { PIECE_COUNT = sizeof PIECES / sizeof *PIECES };

/* The steps of a frame: BERT's, the byte-level one, SentencePiece's, and one of everything. */
static const pgee_tokenizer_step
    BERT_N[] = {{PGEE_STEP_BERT_NORMALIZER, 1, 1, 1, 1, NULL, NULL, 0, 0}},
    BERT_P[] = {{.kind = PGEE_STEP_BERT_PRE_TOKENIZER}},
    BERT_D[] = {{.kind = PGEE_STEP_DECODE_WORDPIECE, .text = "##", .text_bytes = 2, .a = 1}},
    BYTE_P[] = {{.kind = PGEE_STEP_BYTE_LEVEL, .a = 1, .b = 1}}, SPACE_N[] = {{.kind = PGEE_STEP_NMT}, {.kind = PGEE_STEP_NFKC}},
    SPACE_P[] = {{.kind = PGEE_STEP_WHITESPACE_SPLIT},
                 {.kind = PGEE_STEP_METASPACE, .a = 0x2581, .b = PGEE_PREPEND_FIRST, .c = 1}},
    SPACE_D[] = {{.kind = PGEE_STEP_BYTE_FALLBACK}, {.kind = PGEE_STEP_METASPACE, .a = 0x2581, .b = PGEE_PREPEND_FIRST, .c = 1}},
    ALL_N[] = {{.kind = PGEE_STEP_NFD},
               {.kind = PGEE_STEP_STRIP_ACCENTS},
               {.kind = PGEE_STEP_LOWERCASE},
               {.kind = PGEE_STEP_STRIP, .a = 1, .b = 1},
               {.kind = PGEE_STEP_REPLACE, .a = 1, .text = "e+|1", .text_bytes = 4, .more = "ab", .more_bytes = 2},
               {.kind = PGEE_STEP_PREPEND, .text = "\u2581", .text_bytes = 3},
               {.kind = PGEE_STEP_NFKC}},
    ALL_P[] = {{.kind = PGEE_STEP_PUNCTUATION, .a = PGEE_MERGED_WITH_NEXT},
               {.kind = PGEE_STEP_DIGITS, .a = 1},
               {.kind = PGEE_STEP_SPLIT, .a = 1, .b = PGEE_MERGED_WITH_PREVIOUS, .text = "\\s+|[ab]{2}", .text_bytes = 11},
               {.kind = PGEE_STEP_BYTE_LEVEL, .a = 1, .b = 1}},
    ALL_D[] = {{.kind = PGEE_STEP_BYTE_LEVEL},
               {.kind = PGEE_STEP_DECODE_STRIP, .a = 'a', .b = 1, .c = 1},
               {.kind = PGEE_STEP_REPLACE, .text = "b", .text_bytes = 1},
               {.kind = PGEE_STEP_DECODE_FUSE}};

static const pgee_template_piece SINGLE[] = {{1, 0}, {PGEE_TEXT_A, 0}, {2, 0}},
                                 PAIR[] = {{1, 0}, {PGEE_TEXT_A, 0}, {2, 0}, {PGEE_TEXT_B, 1}, {2, 1}};
static const int32_t MERGES[] = {3, 4, 6, 12, 3, 13, 10, 3, 11};
static const pgee_added_token ADDED[] = {{.text = "[SEP]", .bytes = 5, .id = -1, .lstrip = 1, .rstrip = 1, .special = 1},
                                         {.text = "Ea", .bytes = 2, .id = -1, .normalized = 1, .single_word = 1}};

#define STEPS(name, list) .name##s = list, .name##_count = sizeof(list) / sizeof *(list)

static const struct {
  const pgee_tokenizer_step *normalizers, *pre_tokenizers, *decoders;
  int64_t normalizer_count, pre_tokenizer_count, decoder_count;
} FRAMES[] = {
    {STEPS(normalizer, BERT_N), STEPS(pre_tokenizer, BERT_P), STEPS(decoder, BERT_D)},
    {STEPS(pre_tokenizer, BYTE_P), STEPS(decoder, BYTE_P)},
    {STEPS(normalizer, SPACE_N), STEPS(pre_tokenizer, SPACE_P), STEPS(decoder, SPACE_D)},
    {STEPS(normalizer, ALL_N), STEPS(pre_tokenizer, ALL_P), STEPS(decoder, ALL_D)},
};
enum { FRAME_COUNT = sizeof FRAMES / sizeof *FRAMES };

int fuzz_encode(const uint8_t *bytes, size_t count) {
  input in = {.at = bytes, .end = bytes + count};
  char pieces[256];
  int64_t ends[PIECE_COUNT], at = 0;
  double scores[PIECE_COUNT];
  int frame = take_choice(&in, FRAME_COUNT), flags = take_byte(&in);
  for (int i = 0; i < PIECE_COUNT; i++) {
    memcpy(pieces + at, PIECES[i], strlen(PIECES[i]));
    ends[i] = at += (int64_t)strlen(PIECES[i]);
    scores[i] = -1 - i / 8.0;
  }
  pgee_tokenizer_definition d = {.model = 1 + flags % 3,
                                 .max_word_chars = 16,
                                 .byte_fallback = flags >> 2 & 1,
                                 .fuse_unk = flags >> 3 & 1,
                                 .trim_offsets = flags >> 4 & 1,
                                 .add_prefix_space = flags >> 5 & 1,
                                 .prefix = "##",
                                 .pieces = pieces,
                                 .ends = ends,
                                 .scores = scores,
                                 .count = PIECE_COUNT,
                                 .merges = MERGES,
                                 .merge_count = 3,
                                 .normalizers = FRAMES[frame].normalizers,
                                 .normalizer_count = FRAMES[frame].normalizer_count,
                                 .pre_tokenizers = FRAMES[frame].pre_tokenizers,
                                 .pre_tokenizer_count = FRAMES[frame].pre_tokenizer_count,
                                 .decoders = FRAMES[frame].decoders,
                                 .decoder_count = FRAMES[frame].decoder_count,
                                 .single = SINGLE,
                                 .single_count = 3,
                                 .pair = PAIR,
                                 .pair_count = 5,
                                 .added = ADDED,
                                 .added_count = flags >> 6 & 2};
  use_definition(&d, &in);
  input_free(&in);
  return 0;
}
