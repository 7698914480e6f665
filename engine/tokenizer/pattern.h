/* pattern.h: regular expressions as tokenizer.json has them, in time linear in what is searched.
 *
 * Understood: literals, . ^ $ \A \z, \p{L} \p{N} \s \w \d and their capitals, \n \r \t \xHH \x{H...}, [classes], ( ) (?: )
 * (?i: ), | * + ? {m,n} and their lazy forms, (?= ) and (?! ) of one character. ^ and $ are of lines. Of matches the leftmost
 * counts, of those the one whose alternatives come first. */
#ifndef PERIGEE_PATTERN_H
#define PERIGEE_PATTERN_H
#include <stdint.h>

typedef struct pattern pattern;

/* PGEE_UNSUPPORTED names what is not understood; a pattern that may match the empty string is not. */
int pattern_new(pattern **out, const char *text, int64_t bytes);
void pattern_free(pattern *p);
/* The first match in text[at] to text[bytes - 1]; what stands before `at` is seen by ^. 0 if there is none. */
int pattern_next(const pattern *p, const char *text, int64_t at, int64_t bytes, int64_t *begin, int64_t *end);

#endif
