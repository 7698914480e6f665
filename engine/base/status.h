/* status.h: how a function of the engine fails: return fail(PGEE_ARGUMENT, "alpha is %g, expected 0 to 1", alpha);
 * The detail goes to this thread's message, the status to the caller. */
#ifndef PERIGEE_STATUS_H
#define PERIGEE_STATUS_H
#include "engine/perigee.h"

/* Sets the message and returns `status`. Longer messages are cut at 4 KiB. The arguments may point into the old message. */
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What NEED calls: refuses the first of `given` that is NULL. names: of them all, "out, p". */
int status_expect_given(const char *function, const char *names, int count, const void *const *given);

/* Returns early with a failure that already has its message. */
#define TRY(call)           \
  do {                      \
    int status_ = (call);   \
    if (status_ != PGEE_OK) \
      return status_;       \
  } while (0)

/* Pointers that a function of perigee.h cannot do without: NEED(out, p). One that is NULL is refused by its name. */
#define NEED(...)                                                                                         \
  TRY(status_expect_given(__func__, #__VA_ARGS__, sizeof((const void *[]){__VA_ARGS__}) / sizeof(void *), \
                          (const void *const[]){__VA_ARGS__}))

#endif
