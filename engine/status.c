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

const char *pgee_message(void) { return message; }
