/* vocabulary.c: reads the pieces and scores of a tokenizer.json fast: 250,000 pieces are most of a file of 10 MB.
 *
 * Only the list model.vocab is read. The text before it is skipped; the caller reads and checks it. Scores are rounded as the
 * JSON reader of the tokenizers package rounds them, which is not always to the nearest double, because paths that have equal
 * scores there must have equal scores here. */
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/json.h"
#include "engine/base/memory.h"
#include "engine/perigee.h"
#include "engine/base/status.h"

enum { MAX_TEN = 308 };

/* ---- Numbers -------------------------------------------------------------------------------------------------------------- */

/* A decimal number: significand * 10^exponent. Digits that do not fit into the significand only change the exponent. */
typedef struct decimal {
  uint64_t significand;
  int64_t exponent;
  int is_full, is_negative;
} decimal;

static int is_digit(const json *j) { return j->at < j->end && *j->at >= '0' && *j->at <= '9'; }

static int read_digits(json *j, decimal *d, int is_fraction) {
  if (!is_digit(j))
    return json_fail(j, "expected a digit");
  for (; is_digit(j); j->at++) {
    uint64_t more, digit = (uint64_t)(*j->at - '0');
    d->is_full |= __builtin_mul_overflow(d->significand, 10, &more) || __builtin_add_overflow(more, digit, &more);
    if (!d->is_full)
      d->significand = more;
    d->exponent += d->is_full ? !is_fraction : -is_fraction;
  }
  return PGEE_OK;
}

static int read_exponent(json *j, decimal *d) {
  int is_negative = j->at < j->end && *j->at == '-';
  int64_t exponent = 0;
  if (j->at < j->end && (*j->at == '-' || *j->at == '+'))
    j->at++;
  if (!is_digit(j))
    return json_fail(j, "expected a digit");
  for (; is_digit(j); j->at++)
    exponent = exponent < INT32_MAX ? exponent * 10 + (*j->at - '0') : exponent;
  d->exponent += is_negative ? -exponent : exponent;
  return PGEE_OK;
}

/* One multiplication or division by a power of ten as the nearest double; very small numbers are divided by 10^308 first. */
static int value_of(const json *j, const decimal *d, const double *tens, double *out) {
  double x = (double)d->significand;
  int64_t exponent = d->exponent;
  for (; exponent < -MAX_TEN && x != 0; exponent += MAX_TEN)
    x /= tens[MAX_TEN];
  if (x != 0 && exponent <= MAX_TEN)
    x = exponent < 0 ? x / tens[-exponent] : x * tens[exponent];
  if (x != 0 && (exponent > MAX_TEN || x > DBL_MAX))
    return json_fail(j, "a number that is larger than any double");
  *out = d->is_negative ? -x : x;
  return PGEE_OK;
}

static int read_number(json *j, const double *tens, double *out) {
  decimal d = {.is_negative = json_peek(j) == '-'};
  j->at += d.is_negative;
  const char *first = j->at;
  TRY(read_digits(j, &d, 0));
  if (*first == '0' && j->at - first > 1)
    return json_fail(j, "a number with a leading zero");
  if (j->at < j->end && *j->at == '.') {
    j->at++;
    d.is_full = 0;
    TRY(read_digits(j, &d, 1));
  }
  if (j->at < j->end && (*j->at == 'e' || *j->at == 'E')) {
    j->at++;
    TRY(read_exponent(j, &d));
  }
  return value_of(j, &d, tens, out);
}

/* ---- Where the list is ----------------------------------------------------------------------------------------------------- */

static int skip_string(json *j) {
  for (j->at++; j->at < j->end && *j->at != '"'; j->at++)
    if (*j->at == '\\' && j->at + 1 < j->end)
      j->at++;
  if (j->at == j->end)
    return json_fail(j, "a string that does not end");
  j->at++;
  return PGEE_OK;
}

/* Skips one value. It does not find all errors, because the caller's reader of the rest finds them. */
static int skip_value(json *j) {
  int64_t depth = 0;
  do {
    int c = json_peek(j);
    if (c < 0)
      return json_fail(j, "a value that does not end");
    if (c == '"') {
      TRY(skip_string(j));
      continue;
    }
    j->at++;
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    while (depth == 0 && j->at < j->end && !memchr(",]} \t\r\n", *j->at, 7))
      j->at++;
  } while (depth > 0);
  return PGEE_OK;
}

/* If an object begins here, goes to the value of its first member with this name. `name` is in quotes, as in the text. */
static int enter(json *j, const char *name, int *found) {
  int64_t length = (int64_t)strlen(name);
  int more;
  *found = 0;
  if (json_peek(j) != '{')
    return PGEE_OK;
  j->at++;
  for (int64_t count = 0;; count++) {
    TRY(json_more(j, '}', count, &more));
    if (!more)
      return PGEE_OK;
    if (json_peek(j) != '"')
      return json_fail(j, "expected a string");
    const char *key = j->at;
    TRY(skip_string(j));
    *found = j->at - key == length && memcmp(key, name, (size_t)length) == 0;
    TRY(json_take(j, ':'));
    if (*found)
      return PGEE_OK;
    TRY(skip_value(j));
  }
}

/* ---- The list -------------------------------------------------------------------------------------------------------------- */

/* One block: | pgee_vocabulary, which callers see | ends | scores | bytes |. */
typedef struct lists {
  pgee_vocabulary seen;
  int64_t *ends;
  double *scores;
} lists;

static lists *new_lists(const json *j, char **bytes) {
  int64_t room = 0;
  for (const char *s = j->at; s < j->end; s++) /* each piece has a bracket */
    room += *s == '[';
  lists *l = mem_new((int64_t)sizeof *l + room * 16 + (j->end - j->at));
  if (!l)
    return NULL;
  l->ends = (int64_t *)(l + 1);
  l->scores = (double *)(l->ends + room);
  *bytes = (char *)(l->scores + room);
  l->seen = (pgee_vocabulary){.bytes = *bytes, .ends = l->ends, .scores = l->scores};
  return l;
}

static int read_piece(json *j, lists *l, const double *tens) {
  const char *piece;
  TRY(json_take(j, '['));
  TRY(json_string(j, &piece));
  j->strings--; /* without the zero at its end */
  TRY(json_take(j, ','));
  TRY(read_number(j, tens, &l->scores[l->seen.count]));
  TRY(json_take(j, ']'));
  l->ends[l->seen.count++] = j->strings - l->seen.bytes;
  return PGEE_OK;
}

static int read_pieces(json *j, lists *l) {
  double tens[MAX_TEN + 1];
  char text[16];
  int more;
  for (int i = 0; i <= MAX_TEN; i++) {
    snprintf(text, sizeof text, "1e%d", i);
    tens[i] = strtod(text, NULL);
  }
  TRY(json_take(j, '['));
  for (;;) {
    TRY(json_more(j, ']', l->seen.count, &more));
    if (!more)
      return PGEE_OK;
    TRY(read_piece(j, l, tens));
  }
}

int pgee_vocabulary_json(pgee_vocabulary **out, const char *path, const char *text, int64_t bytes) {
  NEED(out, path, text);
  if (bytes < 0)
    return fail(PGEE_ARGUMENT, "a text of %lld bytes, expected 0 or more", (long long)bytes);
  json j = {.path = path, .start = text, .at = text, .end = text + bytes, .zeros = 1};
  int found;
  TRY(enter(&j, "\"model\"", &found));
  if (found)
    TRY(enter(&j, "\"vocab\"", &found));
  if (!found || json_peek(&j) != '[') {
    *out = NULL;
    return PGEE_OK;
  }
  lists *l = new_lists(&j, &j.strings);
  if (!l)
    return PGEE_MEMORY;
  l->seen.begin = j.at - text;
  int status = read_pieces(&j, l);
  l->seen.end = j.at - text;
  if (status == PGEE_OK)
    status = json_utf8(&(json){.path = path, .offset = l->seen.begin, .start = text + l->seen.begin, .end = j.at});
  if (status == PGEE_OK)
    *out = &l->seen;
  else
    mem_free(l);
  return status;
}

void pgee_vocabulary_free(pgee_vocabulary *v) { mem_free(v); }
