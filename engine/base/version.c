/* version.c: the version and the header of the library. The Makefile makes header.inc from perigee.h. */
#include "engine/perigee.h"

const char *pgee_version(void) { return PGEE_VERSION; }

const char *pgee_header(void) {
  return
#include "header.inc"
      ;
}
