/* finish.h: epilogues that run in the same instruction stream as the product of another tile; after a v16_*.h and functions.h.
 *
 * prepare_panel lays out what the epilogues of a panel read, because that is then one short run of memory for all tiles of the panel.
 */
#include <string.h>

#include "kernels/rows/rows.h"

/* The epilogues that can run so: to float, to u8, by GELU in pieces to u8, the same with q_add; to float, to u8 with a scale for each
 * row, by GELU in pieces to float. */
enum { NONE, TO_F32, TO_U8, GELU_TO_U8, GELU_SHIFTED_TO_U8, ROWS_TO_F32, ROWS_TO_U8, ROWS_GELU_TO_F32 };

/* Rows with scales of their own have zero points of their own, too: this one where they are symmetric. */
enum { SYMMETRIC_ZERO = 128 };
static int is_symmetric(const pending_tile *p) {
  for (int i = 0; i < p->m; i++)
    if (p->e->row_zero[p->t0 + i] != SYMMETRIC_ZERO)
      return 0;
  return 1;
}

static int kind_of(const pending_tile *p) {
  const epilogue *e = p->e;
  if (!e || p->n < PANEL || e->residual || !e->y == !e->q || !e->row_zero != !e->row_scale)
    return NONE;
  int rows = e->row_zero != NULL, shifted = e->q && e->q_add, activation = e->activation;
  if (rows && !is_symmetric(p))
    return NONE;
  if (shifted && (rows || activation == PGEE_IDENTITY))
    return NONE;
  if (activation == PGEE_IDENTITY)
    return e->y ? (rows ? ROWS_TO_F32 : TO_F32) : rows ? ROWS_TO_U8 : TO_U8;
  if ((activation == PGEE_GELU_ROUNDED || activation == PGEE_GELU_TANH_ROUNDED) && rows == (e->y != NULL))
    return rows ? ROWS_GELU_TO_F32 : shifted ? GELU_SHIFTED_TO_U8 : GELU_TO_U8;
  return NONE;
}

static void lay_out_panel(panel_constants *panel, const epilogue *e, int64_t n0) {
  int32_t zero = e->row_zero ? SYMMETRIC_ZERO : e->zero;
  for (int i = 0; i < PANEL; i++)
    panel->offset[i] = zero * e->wsum[n0 + i];
  memcpy(panel->scale, e->scale + n0, sizeof panel->scale);
  memcpy(panel->bias, e->bias + n0, sizeof panel->bias);
  if (e->q)
    memcpy(panel->mul, e->q_mul + n0, sizeof panel->mul);
  if (e->q && e->q_add)
    memcpy(panel->add, e->q_add + n0, sizeof panel->add);
  panel->lo = (float)e->q_lo;
  panel->hi = (float)e->q_hi;
  panel->zero = e->q_zero;
}

/* Is what is stored floats? */
INLINE int is_float(int kind) { return kind == TO_F32 || kind == ROWS_TO_F32 || kind == ROWS_GELU_TO_F32; }

/* The table of GELU's pieces. */
INLINE const float (*pieces_of(const epilogue *e))[16] {
  return e->activation == PGEE_GELU_ROUNDED ? gelu_erf_pieces : gelu_tanh_pieces;
}

/* Where the results of a tile begin, and the bytes from one row to the next. */
INLINE char *results_of(const pending_tile *p, int64_t *ld, int kind) {
  const epilogue *e = p->e;
  *ld = is_float(kind) ? e->ldy * 4 : e->ldq;
  return is_float(kind) ? (char *)(e->y + p->t0 * e->ldy + p->n0) : (char *)(e->q + p->t0 * e->ldq + p->n0);
}

/* gelu_pieces with two comparisons less, since products on AMX leave few of these: the same bits. */
INLINE v16 gelu_overlapped(v16 x, const float (*c)[16]) {
  v16 z = vmin(vsplat(c[3][2]), vfma(vabs(x), vsplat(c[3][0]), vsplat(c[3][1])));
  return vpositive_less(x, vfma(vfma(vpick(c[0], z), z, vpick(c[1], z)), z, vpick(c[2], z)));
}

/* Columns k to k + 16 of a row whose sums are c, before they are rounded to u8: the arithmetic of rows/body.h. */
INLINE v16 finished(const int32_t *c, int64_t k, const panel_constants *of, const float (*pieces)[16], const float *row_scale,
                    const int kind, v16 (*gelu)(v16, const float (*)[16])) {
  v16 v = vfloat(visub(viload(c, 16), viload(of->offset + k, 16)));
  if (kind >= ROWS_TO_F32)
    v = vmul(v, vsplat(*row_scale));
  v = vfma(v, vload(of->scale + k, 16), vload(of->bias + k, 16));
  if (kind == GELU_TO_U8 || kind == GELU_SHIFTED_TO_U8 || kind == ROWS_GELU_TO_F32)
    v = gelu(v, pieces);
  if (kind == GELU_SHIFTED_TO_U8)
    return vfma(v, vload(of->mul + k, 16), vload(of->add + k, 16));
  return is_float(kind) ? v : vmul(v, vload(of->mul + k, 16));
}

/* Are its bounds those that vstore_rounded takes? */
INLINE int is_narrow(const pending_tile *p) {
  const epilogue *e = p->e;
  return !e || !e->q || (e->q_lo <= 0 && e->q_hi - e->q_lo <= 255);
}
