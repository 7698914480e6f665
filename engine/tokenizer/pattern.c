/* pattern.c: compiles a regular expression to a short program; pattern_search.c runs it.
 *
 *   a|b   split 1, 3; a; jump 2; b          a*  split 1, 3; a; jump -2          a+  a; split -1, 1          a?  split 1, 2; a
 */
#include "pattern_program.h"

#include <string.h>

#include "engine/base/memory.h"
#include "engine/base/status.h"
#include "unicode.h"

enum { MAX_REPEAT = 64, MAX_DEPTH = 32 };

int pattern_has(const pattern_set *s, uint32_t c) {
  uint32_t flags = unicode(c)->flags;
  if (s->brackets && c < 256 && (flags & (UNICODE_NUMBER | UNICODE_DIGIT)) == UNICODE_NUMBER)
    flags &=
        ~(uint32_t)UNICODE_WORDS; /* the tokenizers package has superscripts and fractions of Latin-1 in \w, but not in [\w] */
  int in = (flags & s->any) != 0;
  for (int i = 0; !in && i < s->nones; i++)
    in = !(flags & s->none[i]);
  for (int i = 0; !in && i < s->ranges; i++)
    in = c >= s->range[i][0] && c <= s->range[i][1];
  return in != s->negated;
}

/* ---- Parsing --------------------------------------------------------------------------------------------------------------- */

typedef struct parser {
  pattern *p;
  const char *at, *end, *text;
  int64_t bytes;
  int fold, depth;
} parser;

static int unsupported(const parser *s, const char *what) {
  return fail(PGEE_UNSUPPORTED, "the regular expression '%.*s' is not supported: %s at byte %d", (int)s->bytes, s->text, what,
              (int)(s->at - s->text));
}

static int emit(parser *s, int op, int x, int y) {
  if (s->p->length == PATTERN_MAX_CODE)
    return unsupported(s, "it is too long");
  s->p->code[s->p->length++] = (pattern_instruction){(uint8_t)op, (int16_t)x, (int16_t)y};
  return PGEE_OK;
}

/* Inserts an instruction before those from `place` on. Their jumps are relative and stay among them, so none needs to change. */
static int insert(parser *s, int place, int op, int x, int y) {
  TRY(emit(s, op, x, y));
  pattern_instruction last = s->p->code[s->p->length - 1];
  memmove(&s->p->code[place + 1], &s->p->code[place], (size_t)(s->p->length - 1 - place) * sizeof last);
  s->p->code[place] = last;
  return PGEE_OK;
}

static int add_range(parser *s, pattern_set *to, uint32_t first, uint32_t last) {
  if (to->ranges == PATTERN_MAX_RANGES)
    return unsupported(s, "more ranges in a class than it takes");
  to->range[to->ranges][0] = first;
  to->range[to->ranges++][1] = last;
  return PGEE_OK;
}

/* Adds a character to a set, and if case does not count also the characters that are equal to it. */
static int add_character(parser *s, pattern_set *to, uint32_t c) {
  if (s->fold && c > 127 && unicode(c)->flags & UNICODE_LETTER)
    return unsupported(s, "a letter beyond ASCII where case does not count");
  TRY(add_range(s, to, c, c));
  uint32_t low = c | 0x20;
  if (!s->fold || low < 'a' || low > 'z' || c > 127)
    return PGEE_OK;
  TRY(add_range(s, to, c ^ 0x20, c ^ 0x20));
  return low == 's' ? add_range(s, to, 0x17F, 0x17F) : low == 'k' ? add_range(s, to, 0x212A, 0x212A) : PGEE_OK;
}

static uint32_t take(parser *s) {
  uint32_t c;
  s->at += utf8_decode(s->at, s->end - s->at, &c);
  return c;
}

static int digit(int c) { return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1; }

/* \xHH or \x{H...} behind the x. */
static int take_hex(parser *s, uint32_t *c) {
  int braces = s->at < s->end && *s->at == '{', most = braces ? 6 : 2, n = 0;
  s->at += braces;
  for (*c = 0; n < most && s->at < s->end && digit(*s->at) >= 0; n++, s->at++)
    *c = *c * 16 + (uint32_t)digit(*s->at);
  if (n == 0 || *c > 0x10FFFF || (braces && (s->at == s->end || *s->at++ != '}')))
    return unsupported(s, "a character by number");
  return PGEE_OK;
}

/* The flag of a property: \p{L}, of which only the first letter is read by `letter`. 0: none. */
static uint32_t flag_of(int letter) {
  switch (letter) {
  case 's': return UNICODE_SPACE;
  case 'w': return UNICODE_WORDS;
  case 'd': return UNICODE_DIGIT;
  case 'L': return UNICODE_LETTER;
  case 'N': return UNICODE_NUMBER;
  }
  return 0;
}

/* Reads what follows a backslash: a property (*flag, *negated) or a character (*flag = 0). */
static int take_escape(parser *s, uint32_t *flag, int *negated, uint32_t *c) {
  *flag = 0;
  *negated = 0;
  if (s->at == s->end)
    return unsupported(s, "a backslash at the end");
  char letter = *s->at;
  if (letter == 'p' || letter == 'P') {
    if (s->end - s->at < 4 || s->at[1] != '{' || s->at[3] != '}' || !(*flag = flag_of(s->at[2])))
      return unsupported(s, "a property other than \\p{L} and \\p{N}");
    *negated = letter == 'P';
    s->at += 4;
    return PGEE_OK;
  }
  if (strchr("swdSWD", letter)) {
    *negated = letter < 'a';
    *flag = flag_of(letter | 32);
    s->at++;
    return PGEE_OK;
  }
  *c = take(s);
  if (*c == 'x')
    return take_hex(s, c);
  const char *names = "nrtfv", *found = *c < 128 ? strchr(names, (int)*c) : NULL;
  if (found)
    *c = (uint32_t) "\n\r\t\f\v"[found - names];
  else if (*c < 128 && (digit((int)*c) >= 0 || (*c | 32) - 'a' < 26u))
    return unsupported(s, "an escape");
  return PGEE_OK;
}

static int add_property(parser *s, pattern_set *to, uint32_t flag, int negated) {
  if (!negated)
    to->any |= flag;
  else if (to->nones < PATTERN_MAX_NONE)
    to->none[to->nones++] = flag;
  else
    return unsupported(s, "more negated properties in a class than it takes");
  return PGEE_OK;
}

static int take_member(parser *s, pattern_set *to) {
  uint32_t flag = 0, c, last;
  int negated;
  if (*s->at == '[')
    return unsupported(s, "a class in a class");
  if (*s->at == '&' && s->end - s->at > 1 && s->at[1] == '&')
    return unsupported(s, "an intersection of classes");
  c = take(s);
  if (c == '\\')
    TRY(take_escape(s, &flag, &negated, &c));
  if (flag)
    return add_property(s, to, flag, negated);
  if (s->end - s->at < 2 || *s->at != '-' || s->at[1] == ']')
    return add_character(s, to, c);
  s->at++;
  last = take(s);
  if (last == '\\')
    TRY(take_escape(s, &flag, &negated, &last));
  if (flag || last < c || s->fold)
    return unsupported(s, "a range in a class");
  return add_range(s, to, c, last);
}

static int new_set(parser *s, pattern_set **out) {
  if (s->p->set_count == PATTERN_MAX_SETS)
    return unsupported(s, "more classes than it takes");
  *out = &s->p->sets[s->p->set_count];
  return emit(s, PATTERN_SET, s->p->set_count++, 0);
}

static int take_class(parser *s, pattern_set *to) {
  to->brackets = 1;
  if (s->at < s->end && *s->at == '^') {
    to->negated = 1;
    s->at++;
  }
  for (int first = 1; s->at < s->end && (*s->at != ']' || first); first = 0)
    TRY(take_member(s, to));
  if (s->at == s->end)
    return unsupported(s, "a class without its end");
  s->at++;
  return PGEE_OK;
}

static int alternatives(parser *s);

/* Reads a group, from behind its opening bracket. */
static int take_group(parser *s) {
  int ahead = -1, fold = s->fold, start = s->p->length;
  if (s->at < s->end && *s->at == '?') {
    s->at++;
    if (s->at < s->end && (*s->at == '=' || *s->at == '!'))
      ahead = *s->at++ == '=' ? PATTERN_AHEAD : PATTERN_NOT_AHEAD;
    else {
      if (s->at < s->end && *s->at == 'i') {
        s->fold = 1;
        s->at++;
      }
      if (s->at == s->end || *s->at++ != ':')
        return unsupported(s, "a group other than (?: ), (?i: ), (?= ) and (?! )");
    }
  }
  if (++s->depth > MAX_DEPTH)
    return unsupported(s, "groups too deep in one another");
  TRY(alternatives(s));
  s->depth--;
  if (s->at == s->end || *s->at++ != ')')
    return unsupported(s, "a group without its end");
  s->fold = fold;
  if (ahead < 0)
    return PGEE_OK;
  if (s->p->length != start + 1 || s->p->code[start].op != PATTERN_SET)
    return unsupported(s, "a look ahead at more than one character");
  s->p->code[start].op = (uint8_t)ahead;
  return PGEE_OK;
}

/* Whether two letters are equal to one character (ß or a ligature) if case does not count. */
static int are_ligature(uint32_t a, uint32_t b) {
  a |= 0x20;
  b |= 0x20;
  return (a == 's' && (b == 's' || b == 't')) || (a == 'f' && (b == 'f' || b == 'i' || b == 'l'));
}

static int take_atom(parser *s) {
  pattern_set *to = NULL;
  uint32_t flag = 0, c;
  int negated;
  switch (c = take(s)) {
  case '(': return take_group(s);
  case '^': return emit(s, PATTERN_LINE_BEGIN, 0, 0);
  case '$': return emit(s, PATTERN_LINE_END, 0, 0);
  case '*':
  case '+':
  case '?': return unsupported(s, "a repetition of nothing");
  }
  if (c == '\\' && s->at < s->end && (*s->at == 'A' || *s->at == 'z'))
    return emit(s, *s->at++ == 'A' ? PATTERN_BEGIN : PATTERN_END, 0, 0);
  TRY(new_set(s, &to));
  if (c == '[')
    return take_class(s, to);
  if (c == '.') {
    to->negated = 1;
    return add_range(s, to, '\n', '\n');
  }
  if (c == '\\')
    TRY(take_escape(s, &flag, &negated, &c));
  if (!flag && s->fold && s->at < s->end && are_ligature(c, (uint8_t)*s->at))
    return unsupported(s, "letters that one character is equal to where case does not count");
  return flag ? add_property(s, to, flag, negated) : add_character(s, to, c);
}

static int take_number(parser *s, int none) {
  int n = 0, digits = 0;
  for (; s->at < s->end && *s->at >= '0' && *s->at <= '9' && n < 1000; s->at++, digits++)
    n = n * 10 + *s->at - '0';
  return digits ? n : none;
}

/* Reads {m,n} from behind its brace. A brace that begins no repetition is a literal in other libraries; here it is not
 * supported. */
static int take_counts(parser *s, int *least, int *most) {
  *least = take_number(s, 0);
  *most = *least;
  if (s->at < s->end && *s->at == ',') {
    s->at++;
    *most = take_number(s, -1);
  }
  if (s->at == s->end || *s->at++ != '}' || *least > MAX_REPEAT || *most > MAX_REPEAT || (*most >= 0 && *most < *least))
    return unsupported(s, "a repetition");
  return PGEE_OK;
}

/* Compiles the atom that begins at `from` once more. */
static int again(parser *s, const char *from) {
  const char *at = s->at;
  s->at = from;
  int status = take_atom(s);
  s->at = at;
  return status;
}

static int repeat(parser *s, int start, const char *from, int least, int most, int lazy) {
  if (least == 0 && most == 0)
    return unsupported(s, "a repetition");
  for (int i = 1; i < least; i++) {
    start = s->p->length;
    TRY(again(s, from));
  }
  int length = s->p->length - start;
  if (most < 0 && least > 0)
    return lazy ? emit(s, PATTERN_SPLIT, 1, -length) : emit(s, PATTERN_SPLIT, -length, 1);
  if (most < 0) {
    TRY(lazy ? insert(s, start, PATTERN_SPLIT, length + 2, 1) : insert(s, start, PATTERN_SPLIT, 1, length + 2));
    return emit(s, PATTERN_JUMP, -(length + 1), 0);
  }
  for (int i = least; i < most; i++) { /* a?a?: each may be left out */
    if (i > 0) {
      start = s->p->length;
      TRY(again(s, from));
      length = s->p->length - start;
    }
    TRY(lazy ? insert(s, start, PATTERN_SPLIT, length + 1, 1) : insert(s, start, PATTERN_SPLIT, 1, length + 1));
  }
  return PGEE_OK;
}

static int take_repeated(parser *s) {
  const char *from = s->at;
  int start = s->p->length, least = 1, most = 1, lazy;
  TRY(take_atom(s));
  if (s->at == s->end || !strchr("*+?{", *s->at))
    return PGEE_OK;
  char c = *s->at++;
  least = c == '+';
  most = c == '?' ? 1 : -1;
  if (c == '{')
    TRY(take_counts(s, &least, &most));
  lazy = s->at < s->end && *s->at == '?';
  s->at += lazy;
  if (s->at < s->end && strchr("*+?{", *s->at))
    return unsupported(s, "a repetition that gives nothing back, or of a repetition");
  return repeat(s, start, from, least, most, lazy);
}

static int alternatives(parser *s) {
  int start = s->p->length;
  while (s->at < s->end && *s->at != '|' && *s->at != ')')
    TRY(take_repeated(s));
  if (s->at == s->end || *s->at != '|')
    return PGEE_OK;
  s->at++;
  TRY(insert(s, start, PATTERN_SPLIT, 1, s->p->length - start + 2));
  int jump = s->p->length;
  TRY(emit(s, PATTERN_JUMP, 0, 0));
  TRY(alternatives(s));
  s->p->code[jump].x = (int16_t)(s->p->length - jump);
  return PGEE_OK;
}

static void fill_ascii(pattern *p) {
  for (int i = 0; i < p->set_count; i++)
    for (uint32_t c = 0; c < 128; c++)
      p->sets[i].ascii[c] = (uint8_t)pattern_has(&p->sets[i], c);
}

/* Whether the program can reach a match from this instruction without reading a character. */
static int may_be_empty(const pattern *p, int pc, uint8_t *seen) {
  const pattern_instruction *i = &p->code[pc];
  if (seen[pc] || i->op == PATTERN_SET)
    return 0;
  seen[pc] = 1;
  switch (i->op) {
  case PATTERN_MATCH: return 1;
  case PATTERN_JUMP: return may_be_empty(p, pc + i->x, seen);
  case PATTERN_SPLIT: return may_be_empty(p, pc + i->x, seen) || may_be_empty(p, pc + i->y, seen);
  }
  return may_be_empty(p, pc + 1, seen);
}

int pattern_new(pattern **out, const char *text, int64_t bytes) {
  pattern *p = mem_new(sizeof *p);
  if (!p)
    return PGEE_MEMORY;
  parser s = {.p = p, .at = text, .end = text + bytes, .text = text, .bytes = bytes < 200 ? bytes : 200};
  int status = alternatives(&s);
  if (status == PGEE_OK && s.at < s.end)
    status = unsupported(&s, "a bracket without its beginning");
  if (status == PGEE_OK)
    status = emit(&s, PATTERN_MATCH, 0, 0);
  uint8_t seen[PATTERN_MAX_CODE] = {0};
  if (status == PGEE_OK && may_be_empty(p, 0, seen))
    status = unsupported(&s, "it may match the empty string");
  fill_ascii(p);
  if (status == PGEE_OK)
    *out = p;
  else
    pattern_free(p);
  return status;
}

void pattern_free(pattern *p) { mem_free(p); }
