/* tile_vnni.h: a tile of up to 6 rows by 1 to 4 registers in accumulators with names, as in gemm_u8s8/avx512vnni.c; after
 * vec, vec_load, vec_store, vec_four and vec_dot. */
enum { TILE_M = 6, LANES_VEC = sizeof(vec) / 4 };

#define EACH_ROW(f) f(0) f(1) f(2) f(3) f(4) f(5)
#define START(i) vec c##i##0 = s0, c##i##1 = s1, c##i##2 = s2, c##i##3 = s3;
#define STEP(i)                                     \
  if (i < m) {                                      \
    vec x = vec_four(a + i * lda);                  \
    c##i##0 = vec_dot(c##i##0, x, b0);              \
    c##i##1 = n > 1 ? vec_dot(c##i##1, x, b1) : s0; \
    c##i##2 = n > 2 ? vec_dot(c##i##2, x, b2) : s0; \
    c##i##3 = n > 3 ? vec_dot(c##i##3, x, b3) : s0; \
  }
#define PUT(i, j) \
  if (j < n)      \
    vec_store(c + i * ldc + j * LANES_VEC, c##i##j);
#define STORE(i) \
  if (i < m) {   \
    PUT(i, 0)    \
    PUT(i, 1)    \
    PUT(i, 2)    \
    PUT(i, 3)    \
  }

/* m and n, registers of columns, are constants in each copy. */
INLINE void strip(int32_t *c, int64_t ldc, const int32_t *start, const uint8_t *a, int64_t lda, const int8_t *b, int64_t groups,
                  const int m, const int n) {
  vec s0 = vec_load(start), s1 = n > 1 ? vec_load(start + LANES_VEC) : s0;
  vec s2 = n > 2 ? vec_load(start + 2 * LANES_VEC) : s0, s3 = n > 3 ? vec_load(start + 3 * LANES_VEC) : s0;
  EACH_ROW(START);
  for (; groups > 0; groups--, a += 4, b += GROUP) {
    vec b0 = vec_load(b), b1 = n > 1 ? vec_load(b + 4 * LANES_VEC) : b0;
    vec b2 = n > 2 ? vec_load(b + 8 * LANES_VEC) : b0, b3 = n > 3 ? vec_load(b + 12 * LANES_VEC) : b0;
    EACH_ROW(STEP);
  }
  EACH_ROW(STORE);
}

/* The copy for m rows. */
INLINE void strip_of(int32_t *c, int64_t ldc, const int32_t *start, const uint8_t *a, int64_t lda, const int8_t *b,
                     int64_t groups, int m, const int n) {
  switch (m) {
  case 1: strip(c, ldc, start, a, lda, b, groups, 1, n); break;
  case 2: strip(c, ldc, start, a, lda, b, groups, 2, n); break;
  case 3: strip(c, ldc, start, a, lda, b, groups, 3, n); break;
  case 4: strip(c, ldc, start, a, lda, b, groups, 4, n); break;
  case 5: strip(c, ldc, start, a, lda, b, groups, 5, n); break;
  default: strip(c, ldc, start, a, lda, b, groups, 6, n); break;
  }
}
