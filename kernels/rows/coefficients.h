/* coefficients.h: the polynomials of functions.h, highest power first. Printed by coefficients.py. */
/* clang-format off */
/* degree 15, error 6.9e-08; the coefficients of t^0, t^2, ... and t^1, t^3, ... */
static const float gelu_erf_even[] = {
  0x1.99104cp-8f, -0x1.527c44p-5f, 0x1.c9ee62p-4f, -0x1.e2a058p-4f, -0x1.581110p-4f,
  0x1.0d8afap-2f, 0x1.ba93cep-4f, 0x1.f60f00p-9f,
};
static const float gelu_erf_odd[] = {
  -0x1.2f5aecp-8f, 0x1.61c964p-6f, -0x1.a89138p-6f, -0x1.d0adf0p-5f, 0x1.a62b5cp-3f,
  -0x1.1eb87ep-3f, -0x1.c2b682p-3f, -0x1.f1e882p-6f,
};
/* degree 16, error 5.3e-08; the coefficients of t^0, t^2, ... and t^1, t^3, ... */
static const float gelu_tanh_even[] = {
  0x1.7db620p-9f, -0x1.3a1adcp-7f, -0x1.56701cp-8f, 0x1.18c8a6p-4f, -0x1.772ad0p-4f,
  -0x1.674350p-4f, 0x1.091524p-2f, 0x1.c316f0p-4f, 0x1.ded600p-9f,
};
static const float gelu_tanh_odd[] = {
  -0x1.74aecap-8f, 0x1.dd505ep-6f, -0x1.8d76b0p-5f, -0x1.46839ap-6f, 0x1.5fbd44p-3f,
  -0x1.f5628ep-4f, -0x1.cae72ap-3f, -0x1.efda54p-6f,
};
/* relative error of 1 + r + r * r * P(r): 3.8e-09 */
static const float exp_tail[] = {
  0x1.6a2434p-10f, 0x1.1239e2p-7f, 0x1.5558f2p-5f, 0x1.555492p-3f, 0x1.fffffcp-2f,
};
/* relative error of x + x * u * P(u): 8.6e-09 */
static const float tanh_near[] = {
  -0x1.75e1cap-8f, 0x1.52269ap-6f, -0x1.b83c5ap-5f, 0x1.110726p-3f, -0x1.555532p-2f,
};
/* relative error of P(r) / 255: 0.0001; 255 exactly at 0 */
static const float power_255[] = {
  0x1.c0df74p+3f, 0x1.ee1c40p+5f, 0x1.619304p+7f, 0x1.fe0000p+7f,
};
