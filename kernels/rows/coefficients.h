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
/* error 3.8e-05 */
_Alignas(64) static const float gelu_erf_pieces[4][16] = {
  {
    -0x1.0250eap-2f, -0x1.dc8504p-3f, -0x1.9338b8p-3f, -0x1.34d4e4p-3f,
    -0x1.9f6516p-4f, -0x1.c4f10ap-5f, -0x1.1b2b6cp-6f, 0x1.4a13b2p-7f,
    0x1.f338a8p-6f, 0x1.0598dcp-5f, 0x1.53a4bcp-6f, 0x1.498606p-7f,
    0x1.fa4bc6p-9f, 0x1.3c16dep-10f, 0x1.454b68p-12f, 0,
  },
  {
    0x1.689d62p+0f, 0x1.51ddf6p+0f, 0x1.23eb78p+0f, 0x1.c5ea9cp-1f,
    0x1.2e381cp-1f, 0x1.29ae16p-2f, 0x1.9a2daap-6f, -0x1.7007bap-3f,
    -0x1.5fbf46p-2f, -0x1.6b7394p-2f, -0x1.f0cc9cp-3f, -0x1.00f60cp-3f,
    -0x1.a5d5cep-5f, -0x1.190f5cp-6f, -0x1.33fa20p-8f, 0,
  },
  {
    -0x1.cee968p+0f, -0x1.b51b4ap+0f, -0x1.7b7da8p+0f, -0x1.220f2ep+0f,
    -0x1.608bccp-1f, -0x1.9de374p-3f, 0x1.0c7eaap-2f, 0x1.4a6530p-1f,
    0x1.f2cb64p-1f, 0x1.fdf79ep-1f, 0x1.6db592p-1f, 0x1.927196p-2f,
    0x1.607150p-3f, 0x1.f4c4b2p-5f, 0x1.23f678p-6f, 0,
  },
  { 1.25f, 2, 7.75f },
};
/* error 3.9e-05 */
_Alignas(64) static const float gelu_tanh_pieces[4][16] = {
  {
    -0x1.024d0cp-2f, -0x1.dc5216p-3f, -0x1.92d40ap-3f, -0x1.346b96p-3f,
    -0x1.9f246ep-4f, -0x1.c690a2p-5f, -0x1.22bf9ep-6f, 0x1.36c222p-7f,
    0x1.ed4a96p-6f, 0x1.0800c6p-5f, 0x1.5c748ep-6f, 0x1.515aaep-7f,
    0x1.efeefap-9f, 0x1.1454ccp-10f, 0x1.cc20c4p-13f, 0,
  },
  {
    0x1.689964p+0f, 0x1.51c186p+0f, 0x1.23b008p+0f, 0x1.c56e0cp-1f,
    0x1.2e29ccp-1f, 0x1.2b4cf6p-2f, 0x1.d26356p-6f, -0x1.6711bep-3f,
    -0x1.5d2e36p-2f, -0x1.6eed6ep-2f, -0x1.fca462p-3f, -0x1.0605e4p-3f,
    -0x1.9af3e0p-5f, -0x1.e83c7ap-7f, -0x1.b08944p-9f, 0,
  },
  {
    -0x1.cee54ap+0f, -0x1.b4fb80p+0f, -0x1.7b373ap+0f, -0x1.21c54ap+0f,
    -0x1.609e9ap-1f, -0x1.a3d2bcp-3f, 0x1.063858p-2f, 0x1.465bbcp-1f,
    0x1.f0b8a2p-1f, 0x1.0158cep+0f, 0x1.756cd2p-1f, 0x1.987bd8p-2f,
    0x1.5545b6p-3f, 0x1.afe36ep-5f, 0x1.96ec3cp-7f, 0,
  },
  { 1.25f, 2, 7.75f },
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
