/* json.h: a reader of strict JSON (RFC 8259, UTF-8), for callers that know which values come in which order.
 *
 * A failure is PGEE_FORMAT, and its message names the file and the byte. Strings are unescaped into the caller's memory
 * `strings`, which needs as many bytes as the text has: an unescaped string with its final zero is never longer than the string
 * in quotes. */
#ifndef PERIGEE_JSON_H
#define PERIGEE_JSON_H
#include <stdint.h>

typedef struct json {
  const char *path; /* for messages */
  int64_t offset;   /* of the text in it */
  const char *start, *at, *end;
  char *strings; /* where the next string goes */
  int zeros;     /* 1: strings may contain zero bytes; the caller sees from `strings` where a string ends */
} json;

/* Checks that the whole text is UTF-8. Call this first; the other functions rely on it. */
int json_utf8(const json *j);
/* The next character that is not white space, -1 at the end. */
int json_peek(json *j);
/* Skips white space and takes this character; another character is an error. */
int json_take(json *j, char c);
/* Whether the list or object has another member, after `count` members. Takes the comma before the member, or the closing
 * bracket. */
int json_more(json *j, char close, int64_t count, int *more);
/* Reads a string. A string with a zero byte is an error unless j->zeros is set, because most callers could not see where it
 * ends. */
int json_string(json *j, const char **out);
/* Reads an integer from 0 to 2^63 - 1, without sign, fraction, exponent or leading zero. */
int json_integer(json *j, int64_t *out);
/* Fails with a message about the current byte. */
int json_fail(const json *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
