/* checksum.h: CRC-32, the one of zlib, gzip and PNG, for files that notice when they are damaged. */
#ifndef PERIGEE_CHECKSUM_H
#define PERIGEE_CHECKSUM_H
#include <stdint.h>

/* Continues a checksum: `crc` is the checksum of the bytes before (0 if there are none), the result is that of all. */
uint32_t checksum(uint32_t crc, const void *bytes, int64_t count);

#endif
