/* json.h: a reader of strict JSON (RFC 8259, UTF-8, nothing more), for callers that know what they expect where.
 *
 * A failure leaves a PGEE_FORMAT message that says at which byte of which file it is. Strings are unescaped into the caller's
 * `strings`, which holds as many bytes as the text: unescaped and with its final zero no string is longer than it was.
 */
#ifndef PERIGEE_JSON_H
#define PERIGEE_JSON_H
#include <stdint.h>

typedef struct json {
  const char *path; /* for messages */
  int64_t offset;   /* of the text in it */
  const char *start, *at, *end;
  char *strings; /* where the next string goes */
  int zeros;     /* strings may contain zero bytes: the caller sees by `strings` where one ends */
} json;

/* Is all of it UTF-8? To be asked first: what follows takes it for granted. */
int json_utf8(const json *j);
/* The next character that is not white space, -1 at the end. */
int json_peek(json *j);
/* Takes exactly this character, after white space. */
int json_take(json *j, char c);
/* In a list or object of which `count` members were read: is there another? Takes the comma before it, or the closing bracket. */
int json_more(json *j, char close, int64_t count, int *more);
/* A string. One that contains a zero byte is refused, unless `zeros`: most could not tell its end. */
int json_string(json *j, const char **out);
/* An integer of at least 0 that fits: no sign, fraction, exponent or leading zero. */
int json_integer(json *j, int64_t *out);
/* A failure at the current byte. */
int json_fail(const json *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
