/* version.c: what the library says about itself. Both texts come from the Makefile. */
#include "perigee.h"

const char *pgee_version(void) { return PGEE_VERSION; }

const char *pgee_header(void) {
  return
#include "header.inc"
      ;
}
