/* status.h: how a function of the engine fails: return fail(PGEE_ARGUMENT, "alpha is %g, expected 0 to 1", alpha);
 * fail stores the message for the calling thread and returns the status. */
#ifndef PERIGEE_STATUS_H
#define PERIGEE_STATUS_H
#include "engine/perigee.h"

/* Sets the message and returns `status`. Longer messages are cut at 4 KiB. The arguments may point into the old message. */
int fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Fails if one of the `count` pointers is NULL and names the first such pointer. names: "out, p". Called by NEED. */
int status_expect_given(const char *function, const char *names, int count, const void *const *given);

/* Returns from the calling function if the call failed. */
#define TRY(call)           \
  do {                      \
    int status_ = (call);   \
    if (status_ != PGEE_OK) \
      return status_;       \
  } while (0)

/* For functions of perigee.h: NEED(out, p) fails if out or p is NULL, naming the function and the argument. */
#define NEED(...)                                                                                         \
  TRY(status_expect_given(__func__, #__VA_ARGS__, sizeof((const void *[]){__VA_ARGS__}) / sizeof(void *), \
                          (const void *const[]){__VA_ARGS__}))

#endif
