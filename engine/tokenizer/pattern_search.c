/* pattern_search.c: searches a text for a pattern, by running the pattern's program with several threads that advance through
 * the text side by side. The threads are ordered; an earlier thread is a better match.
 *
 * Of two threads at the same instruction only the better one goes on. So the time for each character is at most proportional to
 * the length of the program. */
#include <string.h>

#include "pattern_program.h"
#include "unicode.h"

typedef struct thread {
  int pc;
  int64_t start;
} thread;

typedef struct threads {
  thread list[PATTERN_MAX_CODE];
  int count;
  uint8_t seen[PATTERN_MAX_CODE];
} threads;

/* A place in the text. */
typedef struct place {
  uint32_t c;      /* the next character */
  int size;        /* its bytes; 0 at the end */
  int first;       /* the text begins here */
  int after_break; /* a line begins here */
} place;

static int in_set(const pattern_set *s, uint32_t c) { return c < 128 ? s->ascii[c] : pattern_has(s, c); }

/* Adds a thread at pc, after following the instructions that read no character. */
static void add(threads *to, const pattern *p, int pc, int64_t start, const place *here) {
  if (to->seen[pc])
    return;
  to->seen[pc] = 1;
  const pattern_instruction *i = &p->code[pc];
  switch (i->op) {
  case PATTERN_SPLIT:
    add(to, p, pc + i->x, start, here);
    add(to, p, pc + i->y, start, here);
    return;
  case PATTERN_JUMP: add(to, p, pc + i->x, start, here); return;
  case PATTERN_AHEAD:
  case PATTERN_NOT_AHEAD:
    if ((here->size > 0 && in_set(&p->sets[i->x], here->c)) == (i->op == PATTERN_AHEAD))
      add(to, p, pc + 1, start, here);
    return;
  case PATTERN_LINE_BEGIN:
    if (here->after_break)
      add(to, p, pc + 1, start, here);
    return;
  case PATTERN_BEGIN:
    if (here->first)
      add(to, p, pc + 1, start, here);
    return;
  case PATTERN_END:
    if (here->size == 0)
      add(to, p, pc + 1, start, here);
    return;
  case PATTERN_LINE_END:
    if (here->size == 0 || here->c == '\n')
      add(to, p, pc + 1, start, here);
    return;
  }
  to->list[to->count++] = (thread){pc, start};
}

static void look(place *here, const char *text, int64_t at, int64_t bytes) {
  here->first = at == 0;
  here->after_break = at == 0 || (text[at - 1] == '\n' && at < bytes);
  here->size = at < bytes ? utf8_decode(text + at, bytes - at, &here->c) : 0;
}

int pattern_next(const pattern *p, const char *text, int64_t at, int64_t bytes, int64_t *begin, int64_t *end) {
  threads lists[2], *now = &lists[0], *then = &lists[1];
  int found = 0;
  place here, next;
  now->count = 0;
  memset(now->seen, 0, (size_t)p->length);
  look(&here, text, at, bytes);
  for (;; at += here.size, here = next) {
    if (!found)
      add(now, p, 0, at, &here);
    if (now->count == 0 && (found || here.size == 0))
      return found;
    if (here.size > 0)
      look(&next, text, at + here.size, bytes);
    then->count = 0;
    memset(then->seen, 0, (size_t)p->length);
    for (int i = 0; i < now->count; i++) {
      thread t = now->list[i];
      if (p->code[t.pc].op == PATTERN_MATCH) { /* the threads after this one are worse */
        *begin = t.start;
        *end = at;
        found = 1;
        break;
      }
      if (here.size > 0 && in_set(&p->sets[p->code[t.pc].x], here.c))
        add(then, p, t.pc + 1, t.start, &next);
    }
    if (here.size == 0)
      return found;
    threads *swap = now;
    now = then;
    then = swap;
  }
}
