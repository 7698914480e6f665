/* status.c: the message of the last failure, one per thread. */
#include "status.h"

#include <locale.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[4096];
static locale_t plain; /* numbers have a decimal point whatever locale the host chose */
static pthread_once_t made = PTHREAD_ONCE_INIT;

static void make_plain(void) { plain = newlocale(LC_ALL_MASK, "C", NULL); }

int fail(int status, const char *format, ...) {
  char text[sizeof message];
  va_list args;
  pthread_once(&made, make_plain);
  locale_t before = plain ? uselocale(plain) : NULL;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (before)
    uselocale(before);
  memcpy(message, text, sizeof message);
  return status;
}

int status_expect_given(const char *function, const char *names, int count, const void *const *given) {
  for (int i = 0; i < count; i++, names += strcspn(names, ",") + 2)
    if (!given[i])
      return fail(PGEE_ARGUMENT, "%s: %.*s is NULL", function, (int)strcspn(names, ","), names);
  return PGEE_OK;
}

const char *pgee_message(void) { return message; }
