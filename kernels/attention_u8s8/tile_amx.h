/* tile_amx.h: a tile of up to 16 rows by 64 columns for AMX; after amx_tiles.h.
 *
 *          B                              registers 0 to 3: sums of 16 columns each
 *    A | 0 | 1 | 2 | 3 |                  4, 5: A and B of 16 groups; 6, 7: of the groups that are left
 *
 * Rows and the groups that are left are configured exactly, so nothing past them is read or written. Registers are configured
 * and released by each call, as in gemm_u8s8/amx_body.h.
 */
enum { TILE_M = TILE_ROWS };

static tile_configuration configuration(int m, int left) {
  tile_configuration t = {.palette = 1};
  for (int i = 0; i < 8; i++) {
    t.rows[i] = (uint8_t)(i == 5 ? TILE_ROWS : i == 7 ? left : i == 6 && !left ? 0 : m);
    t.bytes[i] = (uint16_t)(i == 6 ? 4 * left : t.rows[i] ? TILE_BYTES : 0);
  }
  return t;
}

/* All columns by one A: registers A and B, at a and b. */
#define STEP(A, B)                             \
  do {                                         \
    tile_load(A, a, lda);                      \
    tile_load(B, b, GROUP);                    \
    tile_dpbusd(0, A, B);                      \
    if (columns > 1) {                         \
      tile_load(B, b + TILE_BYTES, GROUP);     \
      tile_dpbusd(1, A, B);                    \
    }                                          \
    if (columns > 2) {                         \
      tile_load(B, b + 2 * TILE_BYTES, GROUP); \
      tile_dpbusd(2, A, B);                    \
    }                                          \
    if (columns > 3) {                         \
      tile_load(B, b + 3 * TILE_BYTES, GROUP); \
      tile_dpbusd(3, A, B);                    \
    }                                          \
  } while (0)

/* Row by row from `start`: its rows lie 0 bytes apart. */
#define START(i)   \
  if (columns > i) \
  tile_load(i, start + 16 * i, 0)
#define STORE(i)   \
  if (columns > i) \
  tile_store(i, c + 16 * i, ldc * 4)

static void tile(int32_t *c, int64_t ldc, const int32_t *start, const uint8_t *a, int64_t lda, const int8_t *b, int64_t groups,
                 int m, int columns) {
  tile_configuration t = configuration(m, (int)(groups % 16));
  tile_config(&t);
  START(0);
  START(1);
  START(2);
  START(3);
  for (; groups >= 16; groups -= 16, a += TILE_BYTES, b += 16 * GROUP)
    STEP(4, 5);
  if (groups)
    STEP(6, 7);
  STORE(0);
  STORE(1);
  STORE(2);
  STORE(3);
  tile_release();
}
