/* pattern_program.h: what pattern.c compiles a regular expression to, and pattern_search.c runs. */
#ifndef PERIGEE_PATTERN_PROGRAM_H
#define PERIGEE_PATTERN_PROGRAM_H
#include "pattern.h"

enum { PATTERN_MAX_CODE = 384, PATTERN_MAX_SETS = 64, PATTERN_MAX_RANGES = 16, PATTERN_MAX_NONE = 4 };
enum {
  PATTERN_SET,
  PATTERN_SPLIT,
  PATTERN_JUMP,
  PATTERN_AHEAD,
  PATTERN_NOT_AHEAD,
  PATTERN_LINE_BEGIN,
  PATTERN_LINE_END,
  PATTERN_BEGIN,
  PATTERN_END,
  PATTERN_MATCH
};

/* A character is in the set if it has one of the flags `any`, or has none of those of one of `none`, or is in a range; or,
 * negated, if not. `brackets`: the set is written in them. */
typedef struct pattern_set {
  uint32_t any, none[PATTERN_MAX_NONE], range[PATTERN_MAX_RANGES][2];
  uint8_t nones, ranges, negated, brackets;
  uint8_t ascii[128]; /* the same for these, found once */
} pattern_set;

typedef struct pattern_instruction {
  uint8_t op;
  int16_t x, y; /* the set, or the way to go first and then, relative */
} pattern_instruction;

struct pattern {
  pattern_instruction code[PATTERN_MAX_CODE];
  pattern_set sets[PATTERN_MAX_SETS];
  int length, set_count;
};

/* Whether the character is in the set. pattern_set.ascii has the answer for characters below 128. */
int pattern_has(const pattern_set *s, uint32_t c);

#endif
