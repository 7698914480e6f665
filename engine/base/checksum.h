/* checksum.h: CRC-32, the one of zlib, gzip and PNG, for files that notice when they are damaged. */
#ifndef PERIGEE_CHECKSUM_H
#define PERIGEE_CHECKSUM_H
#include <stdint.h>

/* The checksum of what `crc` is the checksum of (0: of nothing) and these bytes after it. */
uint32_t checksum(uint32_t crc, const void *bytes, int64_t count);

#endif
