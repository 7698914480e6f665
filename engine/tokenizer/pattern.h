/* pattern.h: the regular expressions of tokenizer.json. Searching takes time proportional to the length of the text.
 *
 * Supported: literals, . ^ $ \A \z, \p{L} \p{N} \s \w \d and their capitals, \n \r \t \xHH \x{H...}, [classes], ( ) (?: )
 * (?i: ), | * + ? {m,n} and their lazy forms, (?= ) and (?! ) of one character. ^ and $ match at the ends of lines. The
 * leftmost match counts; of several matches at one place, the one whose alternatives come first. */
#ifndef PERIGEE_PATTERN_H
#define PERIGEE_PATTERN_H
#include <stdint.h>

typedef struct pattern pattern;

/* Compiles a pattern. PGEE_UNSUPPORTED, naming the part, if it uses something else or can match the empty string. */
int pattern_new(pattern **out, const char *text, int64_t bytes);
void pattern_free(pattern *p);
/* Finds the first match in text[at] to text[bytes - 1] and returns 1; returns 0 if there is none. ^ also looks at the text
 * before `at`. */
int pattern_next(const pattern *p, const char *text, int64_t at, int64_t bytes, int64_t *begin, int64_t *end);

#endif
