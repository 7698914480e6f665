/* json.c: strict JSON, read forward only and without recursion. */
#include "json.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/perigee.h"
#include "status.h"

int json_fail(const json *j, const char *format, ...) {
  char text[512];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return fail(PGEE_FORMAT, "'%s': byte %lld: %s", j->path, (long long)(j->offset + (j->at - j->start)), text);
}

/* Names the current byte for messages: "'x'", "the end", "byte 0x07". */
static const char *came(const json *j, char text[16]) {
  unsigned char c = j->at < j->end ? (unsigned char)*j->at : 0;
  if (j->at == j->end)
    return "the end";
  snprintf(text, 16, c > 0x20 && c < 0x7f ? "'%c'" : "byte 0x%02x", c);
  return text;
}

/* Bytes of the well-formed UTF-8 character at p (Unicode 15, table 3-7), 0 if there is none. */
static int utf8_length(const unsigned char *p, const unsigned char *end) {
  int64_t room = end - p;
  unsigned char low = 0x80, high = 0xbf;
  int n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
  if (n < 2)
    return n;
  if (n > room)
    return 0;
  if (p[0] == 0xe0)
    low = 0xa0; /* overlong */
  else if (p[0] == 0xed)
    high = 0x9f; /* surrogates */
  else if (p[0] == 0xf0)
    low = 0x90; /* overlong */
  else if (p[0] == 0xf4)
    high = 0x8f; /* past U+10FFFF */
  if (p[1] < low || p[1] > high)
    return 0;
  for (int i = 2; i < n; i++)
    if (p[i] < 0x80 || p[i] > 0xbf)
      return 0;
  return n;
}

int json_utf8(const json *j) {
  const unsigned char *p = (const unsigned char *)j->start, *end = (const unsigned char *)j->end;
  while (p < end) {
    int n = utf8_length(p, end);
    if (n == 0) {
      json here = *j;
      here.at = (const char *)p;
      return json_fail(&here, "0x%02x does not belong to any UTF-8 character", *p);
    }
    p += n;
  }
  return PGEE_OK;
}

int json_peek(json *j) {
  while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
    j->at++;
  return j->at < j->end ? (unsigned char)*j->at : -1;
}

int json_take(json *j, char c) {
  char text[16];
  if (json_peek(j) != c)
    return json_fail(j, "expected '%c', not %s", c, came(j, text));
  j->at++;
  return PGEE_OK;
}

int json_more(json *j, char close, int64_t count, int *more) {
  char text[16];
  int c = json_peek(j);
  *more = c != close;
  if (c == close) {
    j->at++;
    return PGEE_OK;
  }
  if (count == 0)
    return PGEE_OK;
  if (c != ',')
    return json_fail(j, "expected ',' or '%c', not %s", close, came(j, text));
  j->at++;
  return json_peek(j) == close ? json_fail(j, "'%c' after a comma", close) : PGEE_OK;
}

/* The four hexadecimal digits after \u. */
static int hex4(json *j, uint32_t *out) {
  uint32_t v = 0;
  for (int i = 0; i < 4; i++, j->at++) {
    char c = j->at < j->end ? *j->at : 0;
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0)
      return json_fail(j, "\\u needs four hexadecimal digits");
    v = v * 16 + (uint32_t)digit;
  }
  *out = v;
  return PGEE_OK;
}

/* What follows \u: one unit, or two that are a surrogate pair; written to *s as UTF-8. */
static int escaped_unicode(json *j, char **s) {
  uint32_t c = 0, low = 0;
  TRY(hex4(j, &c));
  if (c == 0 && !j->zeros)
    return json_fail(j, "\\u0000: strings with a zero byte are not taken");
  if (c >= 0xdc00 && c <= 0xdfff)
    return json_fail(j, "\\u%04x is the second half of a surrogate pair without the first", c);
  if (c >= 0xd800 && c <= 0xdbff) {
    if (j->end - j->at < 2 || j->at[0] != '\\' || j->at[1] != 'u')
      return json_fail(j, "\\u%04x is the first half of a surrogate pair without the second", c);
    j->at += 2;
    TRY(hex4(j, &low));
    if (low < 0xdc00 || low > 0xdfff)
      return json_fail(j, "\\u%04x\\u%04x is not a surrogate pair", c, low);
    c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
  }
  char *o = *s;
  if (c < 0x80) {
    *o++ = (char)c;
  } else if (c < 0x800) {
    *o++ = (char)(0xc0 | c >> 6);
  } else if (c < 0x10000) {
    *o++ = (char)(0xe0 | c >> 12);
    *o++ = (char)(0x80 | (c >> 6 & 0x3f));
  } else {
    *o++ = (char)(0xf0 | c >> 18);
    *o++ = (char)(0x80 | (c >> 12 & 0x3f));
    *o++ = (char)(0x80 | (c >> 6 & 0x3f));
  }
  if (c >= 0x80)
    *o++ = (char)(0x80 | (c & 0x3f));
  *s = o;
  return PGEE_OK;
}

static int escaped(json *j, char **s) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  char text[16];
  const char *which = j->at < j->end && *j->at ? strchr(from, *j->at) : NULL;
  if (j->at < j->end && *j->at == 'u') {
    j->at++;
    return escaped_unicode(j, s);
  }
  if (!which)
    return json_fail(j, "no escape sequence begins with a backslash and %s", came(j, text));
  j->at++;
  *(*s)++ = to[which - from];
  return PGEE_OK;
}

int json_string(json *j, const char **out) {
  char text[16];
  if (json_peek(j) != '"')
    return json_fail(j, "expected a string, not %s", came(j, text));
  j->at++;
  char *s = j->strings;
  while (j->at < j->end && *j->at != '"') {
    unsigned char c = (unsigned char)*j->at;
    if (c < 0x20)
      return json_fail(j, "control character 0x%02x in a string", c);
    j->at++;
    if (c == '\\')
      TRY(escaped(j, &s));
    else
      *s++ = (char)c;
  }
  if (j->at == j->end)
    return json_fail(j, "a string that does not end");
  j->at++;
  *s++ = 0;
  *out = j->strings;
  j->strings = s;
  return PGEE_OK;
}

int json_integer(json *j, int64_t *out) {
  char text[16];
  int64_t v = 0;
  int c = json_peek(j);
  if (c == '-')
    return json_fail(j, "a negative number, expected an integer of at least 0");
  if (c < '0' || c > '9')
    return json_fail(j, "expected an integer of at least 0, not %s", came(j, text));
  const char *first = j->at;
  for (; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++)
    if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *j->at - '0', &v))
      return json_fail(j, "an integer that is larger than 2^63 - 1");
  if (*first == '0' && j->at - first > 1)
    return json_fail(j, "an integer with a leading zero");
  if (j->at < j->end && (*j->at == '.' || *j->at == 'e' || *j->at == 'E'))
    return json_fail(j, "a number with '%c', expected an integer without fraction or exponent", *j->at);
  *out = v;
  return PGEE_OK;
}
