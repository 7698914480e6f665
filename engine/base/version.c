/* version.c: what the library says about itself. The Makefile makes header.inc of perigee.h. */
#include "engine/perigee.h"

const char *pgee_version(void) { return PGEE_VERSION; }

const char *pgee_header(void) {
  return
#include "header.inc"
      ;
}
