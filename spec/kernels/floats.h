/* floats.h: what the testers of the float kernels share: buffers that end at a page nobody may touch, values to fill them with,
 * and a comparison of bits. */
#ifndef PERIGEE_SPEC_FLOATS_H
#define PERIGEE_SPEC_FLOATS_H
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "engine/perigee.h"
#include "kernels/kernels.h"

#define PUBLIC __attribute__((visibility("default")))

/* ORDINARY: magnitudes from 2^-6 to 4. EXTREME: zeros of both signs, denormals, the least and the largest floats. SPECIAL:
 * ordinary with NaN and infinities strewn in. CONSTANT: 0.3 everywhere. */
enum { ORDINARY = 0, ZERO = 1, CONSTANT = 2, EXTREME = 3, SPECIAL = 4 };
enum { UNTOUCHED = 0x7fc0dead }; /* what outputs hold beforehand: a NaN that no kernel makes */

typedef struct block {
  char *base;
  size_t bytes;
  union {
    void *data;
    float *f;
    int32_t *i;
    uint8_t *u;
    uint32_t *bits;
  };
} block;

/* Room for `count` values of 4 bytes (or `bytes` in block_bytes) that ends at a page without access, UNTOUCHED throughout. Freed
 * blocks of up to ROOM bytes are kept for the next. */
enum { ROOM = 1 << 17, KEPT = 64 };
static char *kept[KEPT];
static int kept_count;

static inline block block_bytes(int64_t bytes) {
  size_t room = bytes <= ROOM ? ROOM : ((size_t)bytes + 4095) / 4096 * 4096;
  char *base = room == ROOM && kept_count ? kept[--kept_count] : NULL;
  if (!base) {
    base = mmap(NULL, room + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base + room, 4096, PROT_NONE))
      abort();
  }
  uint32_t pattern = UNTOUCHED;
  char *data = base + room - bytes;
  for (int64_t i = 0; i < bytes; i++)
    data[i] = ((const char *)&pattern)[i % 4];
  return (block){.base = base, .bytes = room + 4096, .data = data};
}
static inline block block_new(int64_t count) { return block_bytes(4 * count); }
static inline void block_free(block b) {
  if (b.bytes == ROOM + 4096 && kept_count < KEPT)
    kept[kept_count++] = b.base;
  else
    munmap(b.base, b.bytes);
}

static inline uint32_t draw(uint32_t *seed) {
  *seed = *seed * 1664525u + 1013904223u;
  return *seed >> 8;
}

static inline float value(int fill, uint32_t *seed) {
  static const float extremes[16] = {0.0f,     -0.0f,     1e-45f, -1e-45f, 1.1e-38f, -1.1e-38f, 0x1p-126f, -0x1p-126f,
                                     3.4e+38f, -3.4e+38f, 1e30f,  -1e30f,  1.0f,     -1.0f,     1e-20f,    -1e20f};
  static const float specials[4] = {NAN, INFINITY, -INFINITY, -NAN};
  uint32_t r = draw(seed), s = draw(seed);
  float x = ldexpf((float)(int32_t)(r - 0x800000) / 0x800000, 2 - (int)(s >> 8) % 9);
  switch (fill) {
  case ZERO: return r & 0x100 ? 0.0f : -0.0f;
  case CONSTANT: return 0.3f;
  case EXTREME: return extremes[(s >> 4) % 16];
  case SPECIAL: return s % 8 == 0 ? specials[(s >> 4) % 4] : x;
  default: return x;
  }
}

static inline block block_filled(int64_t count, int fill, uint32_t seed) {
  block b = block_new(count);
  for (int64_t i = 0; i < count; i++)
    b.f[i] = value(fill, &seed);
  return b;
}

/* Equal bits, or both a NaN that was written. */
static inline int same_float(uint32_t a, uint32_t b) {
  int nan_a = (a & 0x7fffffff) > 0x7f800000, nan_b = (b & 0x7fffffff) > 0x7f800000;
  return a == b || (nan_a && nan_b && a != UNTOUCHED && b != UNTOUCHED);
}

/* 1, or 0 and a message that says where they differ. */
static inline int same_floats(const block a, const block b, int64_t count, const char *what, char *why, int64_t bytes) {
  for (int64_t i = 0; i < count; i++)
    if (!same_float(a.bits[i], b.bits[i]))
      return snprintf(why, (size_t)bytes, "%s[%d]: %a (%08x), expected %a (%08x)", what, (int)i, a.f[i], a.bits[i], b.f[i],
                      b.bits[i]),
             0;
  return 1;
}
static inline int same_bytes(const block a, const block b, int64_t count, const char *what, char *why, int64_t bytes) {
  for (int64_t i = 0; i < count; i++)
    if (a.u[i] != b.u[i])
      return snprintf(why, (size_t)bytes, "%s[%d]: %d, expected %d", what, (int)i, a.u[i], b.u[i]), 0;
  return 1;
}

/* Takes an error in; NaN is the worst. */
static inline void see(double *worst, double error) { *worst = !(error <= *worst) ? error : *worst; }

/* FNV-1a over 32-bit words; every NaN counts as one. */
static inline uint64_t digest_words(uint64_t h, const uint32_t *w, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    h = (h ^ ((w[i] & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : w[i])) * 0x100000001b3u;
  return h;
}

#endif
