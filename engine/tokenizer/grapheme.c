/* grapheme.c: the rules of UAX 29, as a state that reads forward only. See grapheme.h. */
#include "grapheme.h"

static int is_control(int class) { return class == GRAPHEME_CONTROL || class == GRAPHEME_CR || class == GRAPHEME_LF; }

/* GB6 to GB8. */
static int hangul_goes_on(int last, int class) {
  switch (last) {
  case GRAPHEME_L: return class == GRAPHEME_L || class == GRAPHEME_V || class == GRAPHEME_LV || class == GRAPHEME_LVT;
  case GRAPHEME_LV:
  case GRAPHEME_V: return class == GRAPHEME_V || class == GRAPHEME_T;
  case GRAPHEME_LVT:
  case GRAPHEME_T: return class == GRAPHEME_T;
  default: return 0;
  }
}

/* GB3 to GB13. */
static int goes_on(const grapheme_state *s, int class) {
  if (is_control(s->last) || is_control(class))
    return s->last == GRAPHEME_CR && class == GRAPHEME_LF;
  return class >= GRAPHEME_SPACING || s->last == GRAPHEME_PREPEND || hangul_goes_on(s->last, class) ||
         (class == GRAPHEME_CONSONANT && s->conjunct == 2) || (class == GRAPHEME_PICTOGRAPH && s->joined == 2) ||
         (class == GRAPHEME_REGIONAL && s->odd);
}

int grapheme_break(grapheme_state *s, int class) {
  int result = !goes_on(s, class);
  int extend = class == GRAPHEME_EXTEND || class == GRAPHEME_LINKER || class == GRAPHEME_LOOSE;
  if (class == GRAPHEME_PICTOGRAPH)
    s->joined = 1;
  else if (s->joined == 1 && class == GRAPHEME_ZWJ)
    s->joined = 2;
  else if (s->joined != 1 || !extend)
    s->joined = 0;
  if (class == GRAPHEME_CONSONANT)
    s->conjunct = 1;
  else if (s->conjunct && class == GRAPHEME_LINKER)
    s->conjunct = 2;
  else if (class != GRAPHEME_EXTEND && class != GRAPHEME_ZWJ)
    s->conjunct = 0;
  s->odd = class == GRAPHEME_REGIONAL && !s->odd;
  s->last = (uint8_t) class;
  return result;
}
