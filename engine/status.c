/* status.c: the message of the last failure, one per thread. */
#include "status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char message[4096];

int fail(int status, const char *format, ...) {
  char text[sizeof message];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  memcpy(message, text, sizeof message);
  return status;
}

int expect_given(const char *function, const char *names, int count, const void *const *given) {
  for (int i = 0; i < count; i++, names += strcspn(names, ",") + 2)
    if (!given[i])
      return fail(PGEE_ARGUMENT, "%s: %.*s is NULL", function, (int)strcspn(names, ","), names);
  return PGEE_OK;
}

const char *pgee_message(void) { return message; }
