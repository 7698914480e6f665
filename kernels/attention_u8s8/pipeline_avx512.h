/* pipeline_avx512.h: INT8 attention whose probabilities overlap with products. Include it after blocks.h and tile_vnni.h.
 *
 * A tile has 5 or 6 queries. It needs its scores first, then its probabilities p, then the product of p with the values. vpdpbusd
 * uses two of the core's four units. Probabilities mostly use the other two. Therefore the kernel computes the probabilities of
 * a tile while it multiplies those of the previous tile by the values: 32 probabilities after every few groups.
 *
 *   scores 0 | p 0 | scores 1 | p 0 x values, p 1 | scores 2 | p 1 x values, p 2 | ...
 *
 * The product takes 32 columns at a time, because 12 accumulators leave registers for the probabilities. Scores and p lie in rows
 * without gaps; the length of a row is the number of keys rounded up to 32. Elements beyond the last key do not count: their
 * values are 0 in the product, and sums leave them out.
 */

/* gcc 12 would keep accumulators that are used twice in memory. */
#define PIN(i)                                  \
  if (i < m && n > 1)                           \
    __asm__("" : "+v"(c##i##0), "+v"(c##i##1)); \
  else if (i < m)                               \
    __asm__("" : "+v"(c##i##0));                \
  if (i < m && n > 3)                           \
    __asm__("" : "+v"(c##i##2), "+v"(c##i##3)); \
  else if (i < m && n > 2)                      \
    __asm__("" : "+v"(c##i##2));
/* The maximum of each row, and of the strips before. */
#define MOST(i)                                     \
  if (i < m) {                                      \
    if (n > 1)                                      \
      c##i##0 = _mm512_max_epi32(c##i##0, c##i##1); \
    if (n > 2)                                      \
      c##i##0 = _mm512_max_epi32(c##i##0, c##i##2); \
    if (n > 3)                                      \
      c##i##0 = _mm512_max_epi32(c##i##0, c##i##3); \
    c##i##0 = _mm512_max_epi32(c##i##0, most[i]);   \
  }
#define KEEP(i) \
  if (i < m)    \
    most[i] = c##i##0;

/* Lane i of x0 becomes all lanes of xi joined by f. */
#define JOIN(f, x0, x1, x2, x3, x4, x5)                                           \
  x0 = f(_mm512_unpacklo_epi32(x0, x1), _mm512_unpackhi_epi32(x0, x1));           \
  x2 = f(_mm512_unpacklo_epi32(x2, x3), _mm512_unpackhi_epi32(x2, x3));           \
  x4 = f(_mm512_unpacklo_epi32(x4, x5), _mm512_unpackhi_epi32(x4, x5));           \
  x0 = f(_mm512_unpacklo_epi64(x0, x2), _mm512_unpackhi_epi64(x0, x2));           \
  x4 = f(_mm512_unpacklo_epi64(x4, x4), _mm512_unpackhi_epi64(x4, x4));           \
  x0 = f(_mm512_shuffle_i32x4(x0, x4, 0x44), _mm512_shuffle_i32x4(x0, x4, 0xEE)); \
  x0 = f(x0, _mm512_shuffle_i32x4(x0, x0, 0xB1));                                 \
  x0 = _mm512_shuffle_i32x4(x0, x0, 0x08)

/* A strip of scores; most: of each row, the largest of the strips before, by lanes; top: NULL, or, at the last one, the largest of
 * each row. m and n, registers of columns, are constants in each copy. */
INLINE void score_strip(int32_t *c, int64_t ldc, vec *most, int32_t *top, const int32_t *start, const uint8_t *a, int64_t lda,
                        const int8_t *b, int64_t groups, const int m, const int n) {
  vec s0 = vec_load(start), s1 = n > 1 ? vec_load(start + 16) : s0;
  vec s2 = n > 2 ? vec_load(start + 32) : s0, s3 = n > 3 ? vec_load(start + 48) : s0;
  EACH_ROW(START);
  for (; groups > 0; groups--, a += 4, b += GROUP) {
    vec b0 = vec_load(b), b1 = n > 1 ? vec_load(b + 64) : b0;
    vec b2 = n > 2 ? vec_load(b + 128) : b0, b3 = n > 3 ? vec_load(b + 192) : b0;
    EACH_ROW(STEP);
  }
  EACH_ROW(PIN);
  EACH_ROW(STORE);
  EACH_ROW(MOST);
  if (top) {
    JOIN(_mm512_max_epi32, c00, c10, c20, c30, c40, c50);
    _mm256_storeu_si256((__m256i *)(void *)top, _mm512_castsi512_si256(c00));
  } else {
    EACH_ROW(KEEP);
  }
}

/* Scores of m queries from t on; top: the largest of each. */
INLINE void score_rows(const attention_u8s8 *a, const parts *s, int64_t t, int32_t *top, const int m) {
  vec least = _mm512_set1_epi32(INT32_MIN), most[6] = {least, least, least, least, least, least};
  const uint8_t *q = a->q + t * a->ld;
  int64_t panel = packed_groups(a->D) * GROUP, groups = groups_of(a->D), ld = row_of(a->S), k = 0;
#define STRIP(n, top) score_strip(s->scores + k, ld, most, top, s->start + k, q, a->ld, s->keys + k / 64 * panel, groups, m, n)
  for (; k + 48 < a->S; k += 64)
    STRIP(4, k + 64 < a->S ? NULL : top);
  switch ((a->S - k + 15) / 16) {
  case 3: STRIP(3, top); break;
  case 2: STRIP(2, top); break;
  case 1: STRIP(1, top); break;
  default: break;
  }
#undef STRIP
}

static void score_tile(const attention_u8s8 *a, const parts *s, int64_t t, int m, int32_t *top) {
  if (m == 6)
    score_rows(a, s, t, top, 6);
  else
    score_rows(a, s, t, top, 5);
}

/* Probabilities that are still to come, 64 at a time; 32 and 32 of them may belong to two rows. */
typedef struct todo {
  uint8_t *p;
  const int32_t *s, *top;
  int64_t half, halves; /* of a row: how many 32s are left, and how many there are */
  int64_t left;         /* 64s */
  v16 c;
} todo;

static todo all_of(const attention_u8s8 *a, const parts *s, int m, const int32_t *top, uint8_t *p) {
  int64_t halves = row_of(a->S) / 32;
  return (todo){p, s->scores, top, halves, halves, (m * halves + 1) / 2, vsplat(a->scale * 0x1.715476p0f)};
}

INLINE v16i from_top(const int32_t *s, v16i top, v16 c) { return probability(vfloat(visub(viload(s, 16), top)), c); }

/* 32 of them, in 16 bits. */
INLINE __m512i half_p(todo *w) {
  v16i top = visplat(*w->top);
  __m512i p = _mm512_packus_epi32(from_top(w->s, top, w->c), from_top(w->s + 16, top, w->c));
  w->s += 32;
  if (--w->half == 0)
    w->half = w->halves, w->top++;
  return p;
}

INLINE void put_p(todo *w, __m512i ab, __m512i cd) {
  vec_store(w->p, narrow(ab, cd));
  w->p += 64, w->left--;
}

INLINE void next_p(todo *w) {
  __m512i ab = half_p(w);
  put_p(w, ab, half_p(w));
}

/* Where the results of a strip of two registers go. */
typedef struct output {
  float *y;
  uint8_t *q;
  int64_t ld;                      /* of y or q */
  const float *factor, *mul, *add; /* add may be NULL */
  v16 lo, hi;
  v16i zero;
} output;
enum { TO_CONTEXT, TO_Y, TO_Q }; /* int32 in the scratch, and then as after blocks; floats alone; u8 alone */

INLINE void put(const output *o, vec sum, int64_t i, int64_t k, const int kind) {
  v16 v = vmul(vfloat(sum), vsplat(o->factor[i]));
  if (kind == TO_Y)
    vstore(o->y + i * o->ld + k, v, 16);
  else
    store_quantized(o->q + i * o->ld + k, scaled(v, o->mul, o->add, k, 16), o->lo, o->hi, o->zero, 16);
}
#define FINISH(i)                 \
  if (i < m) {                    \
    put(o, c##i##0, i, 0, kind);  \
    put(o, c##i##1, i, 16, kind); \
  }
#define GROUP_STEP                                            \
  do {                                                        \
    vec b0 = vec_load(b), b1 = n > 1 ? vec_load(b + 64) : b0; \
    EACH_ROW(STEP);                                           \
    groups--, a += 4, b += GROUP;                             \
  } while (0)

/* m rows of p by n registers of values, beside `count` times 64 of what is to do. m, n and kind are constants in each copy. */
INLINE void context_strip(int32_t *c, const uint8_t *a, int64_t lda, const int8_t *b, int64_t groups, todo *w, int64_t count,
                          const output *o, const int m, const int n, const int kind) {
  const int64_t ldc = 64;
  vec s0 = _mm512_setzero_si512(), s1 = s0, s2 = s0, s3 = s0, b2 = s0, b3 = s0;
  EACH_ROW(START);
  int64_t each = count ? groups / count : 0;
  while (groups > each * count) /* first: the tops have just been computed */
    GROUP_STEP;
  for (; count > 0; count--) {
    for (int64_t end = groups - (each - each / 2); groups > end;)
      GROUP_STEP;
    __m512i ab = half_p(w);
    for (int64_t end = groups - each / 2; groups > end;)
      GROUP_STEP;
    put_p(w, ab, half_p(w));
  }
  EACH_ROW(PIN);
  if (kind == TO_CONTEXT) {
    EACH_ROW(STORE);
  } else {
    EACH_ROW(FINISH);
  }
}

static output output_of(const attention_u8s8 *a, int64_t t, int64_t d, const float *factor) {
  const quantizer *z = &a->quantize;
  int64_t row = t - a->y_begin;
  output o = {.factor = factor, .ld = a->ldy};
  if (a->y)
    o.y = a->y + row * a->ldy + d;
  if (z->mode == QUANTIZE_STATIC) {
    o.q = z->q + row * z->ldq + d;
    o.mul = z->mul + d;
    o.add = z->add ? z->add + d : NULL;
    o.ld = z->ldq;
    o.lo = vsplat((float)z->lo), o.hi = vsplat((float)z->hi), o.zero = visplat(z->zero);
  }
  return o;
}

/* The results of m queries from t on. The probabilities of w overlap with their product. */
INLINE void context_rows(const attention_u8s8 *a, const parts *s, int64_t t, const uint8_t *p, const float *factor, todo w,
                         const int m) {
  int64_t D = a->D, ld = row_of(a->S), groups = groups_of(a->S);
  int kind = D % 32 || (a->y && a->quantize.mode) ? TO_CONTEXT : a->y ? TO_Y : TO_Q;
  for (int64_t d = 0; d < D; d += 32) {
    int64_t strips = (D - d + 31) / 32, count = (w.left + strips - 1) / strips;
    const int8_t *values = s->values + d / 64 * packed_groups(a->S) * GROUP + d % 64 * 4;
    output o = output_of(a, t, d, factor);
#define STRIP(n, kind) context_strip(s->context, p, ld, values, groups, &w, count, &o, m, n, kind)
    if (kind == TO_Q)
      STRIP(2, TO_Q);
    else if (kind == TO_Y)
      STRIP(2, TO_Y);
    else if (D - d > 16)
      STRIP(2, TO_CONTEXT);
    else
      STRIP(1, TO_CONTEXT);
#undef STRIP
    for (int i = 0; kind == TO_CONTEXT && i < m; i++)
      store_context(a, s->context + i * 64, factor[i], t + i, d, at_most(D - d, 32));
  }
}

static void context_tile(const attention_u8s8 *a, const parts *s, int64_t t, int m, const uint8_t *p, const float *factor,
                         todo w) {
  if (m == 6)
    context_rows(a, s, t, p, factor, w, 6);
  else
    context_rows(a, s, t, p, factor, w, 5);
}

#define ZERO(i) vec c##i = visplat(0);
#define SUM(i) \
  if (i < m)   \
    c##i = vec_dot(c##i, vec_load(p + i * ld + k), ones);
#define LAST_SUM(i) \
  if (i < m)        \
    c##i = vec_dot(c##i, _mm512_maskz_loadu_epi8(last, p + i * ld + k), ones);

/* The factor of each row of p v: v_scale over the sum of the row's p. */
INLINE void factors_of(const attention_u8s8 *a, const uint8_t *p, float *factor, const int m) {
  int64_t S = a->S, ld = row_of(S), k = 0;
  __mmask64 last = ~0ull >> (-S & 63);
  vec ones = _mm512_set1_epi8(1);
  EACH_ROW(ZERO);
  for (; k + 64 < S; k += 64) {
    EACH_ROW(SUM);
  }
  EACH_ROW(LAST_SUM);
  JOIN(_mm512_add_epi32, c0, c1, c2, c3, c4, c5);
  _mm256_storeu_ps(factor, _mm256_div_ps(_mm256_set1_ps(a->v_scale), _mm256_cvtepi32_ps(_mm512_castsi512_si256(c0))));
}

static void factors(const attention_u8s8 *a, int m, const uint8_t *p, float *factor) {
  if (m == 6)
    factors_of(a, p, factor, 6);
  else
    factors_of(a, p, factor, 5);
}

/* The height of the next tile of n queries: 6 or 5, such that none is left over in the end; 0 where that cannot be. */
static int height(int64_t n) { return n % 6 && (n + 5) / 6 * 5 <= n ? 5 : n >= 6 ? 6 : 0; }

/* Each tile's probabilities go where the tile before the last had its own. */
static int64_t attend_tiles(const attention_u8s8 *a, const parts *s, int64_t q0, int64_t q1) {
  int64_t ld = row_of(a->S);
  uint8_t *p = s->p, *next = p + 6 * ld + 32;
  int m = a->bias ? 0 : height(q1 - q0);
  int32_t top[8];
  float factor[8];
  if (!m)
    return q0;
  for (int64_t k = a->S; k < panels_of(a->S) * 64; k++)
    s->start[k] = -(1 << 30); /* below every score */
  score_tile(a, s, q0, m, top);
  for (todo w = all_of(a, s, m, top, p); w.left;)
    next_p(&w);
  while (m) {
    todo w = {0};
    factors(a, m, p, factor);
    int after = height(q1 - q0 - m);
    if (after) {
      score_tile(a, s, q0 + m, after, top);
      w = all_of(a, s, after, top, next);
    }
    context_tile(a, s, q0, m, p, factor, w);
    uint8_t *done = p;
    p = next, next = done;
    q0 += m, m = after;
  }
  return q0;
}
