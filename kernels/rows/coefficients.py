#!/usr/bin/env python3
"""Prints coefficients.h: the polynomials of functions.h. Needs numpy alone; run it again after changing a degree or a range.

Each is a weighted minimax fit by Lawson's iteration (C. L. Lawson, 1961): least squares in a Chebyshev basis whose weights grow
where the error is large. A constraint (a value that must be met exactly) is divided out first. The largest weighted error
of the rounded coefficients, evaluated in double, stands above each table; float rounding adds to it what the specs measure.
"""
import math
import numpy as np
from numpy.polynomial import chebyshev, polynomial

POINTS = 4000


def minimax(f, weight, degree, factor=None, iterations=200):
    """The polynomial p of this degree in t in [-1, 1] with the least max |f - factor * p| * weight, in powers of t."""
    t = np.cos(np.pi * (np.arange(POINTS) + 0.5) / POINTS)
    y, w = f(t), weight(t)
    basis = chebyshev.chebvander(t, degree) * (1 if factor is None else factor(t)[:, None])
    lawson, best = np.full(POINTS, 1 / POINTS), (np.inf, None)
    for _ in range(iterations):
        s = np.sqrt(lawson) * w
        c = np.linalg.lstsq(basis * s[:, None], y * s, rcond=None)[0]
        e = np.abs(basis @ c - y) * w
        if e.max() < best[0]:
            best = e.max(), c
        lawson *= e
        lawson /= lawson.sum()
    return chebyshev.cheb2poly(best[1])


def table(name, comment, coefficients):
    """Highest power first, the order of Horner's scheme."""
    if comment:
        print(f"/* {comment} */")
    print(f"static const float {name}[] = {{", end="")
    for i, c in enumerate(reversed(coefficients)):
        print(("\n  " if i % 5 == 0 else " ") + float(np.float32(c)).hex().replace("0000000p", "p") + "f", end=",")
    print("\n};")


erfc = np.vectorize(math.erfc)


def horner(coefficients, t):
    """Highest power first, in float fma steps: the product of two floats is exact in double."""
    p = np.float32(0)
    for c in coefficients:
        p = np.float32(float(p) * float(t) + float(c))
    return p


def gelu(name, tail, c, degree):
    """Q(t) near tail(a) on 0 <= a <= c, t = a * 2 / c - 1, and exactly 0 at t = 1 as functions.h evaluates it."""
    a = lambda t: (t + 1) * (c / 2)
    p = minimax(lambda t: tail(a(t)), np.ones_like, degree - 1, factor=lambda t: 1 - t)
    q = np.float32(polynomial.polymul(p, [1, -1]))
    odd = horner(q[1::2][::-1], 1)
    q[0] = -odd - horner(q[2::2][::-1], 1)
    assert horner(q[0::2][::-1], 1) == -odd
    t = np.linspace(-1, 1, 100001)
    e = np.max(np.abs(polynomial.polyval(t, q.astype(float)) - tail(a(t))))
    table(name + "_even", f"degree {degree}, error {e:.2g}; the coefficients of t^0, t^2, ... and t^1, t^3, ...", q[0::2])
    table(name + "_odd", None, q[1::2])


def gelu_pieces(name, tail):
    """a tail(a) in quadratic pieces: z = 1.25 a + 2 lies in piece i = its bits from 2^20 on.

    Eight pieces are 1/4 wide, eight 1/2; the last is 0.
    """
    f, pieces, worst = lambda z: (z - 2) / 1.25 * tail((z - 2) / 1.25), [], 0
    for i in range(15):
        z0, z1 = (2 + i / 4, 2.25 + i / 4) if i < 8 else (i / 2, i / 2 + 0.5)
        z = lambda t: z0 + (t + 1) * (z1 - z0) / 2
        p = polynomial.Polynomial(minimax(lambda t: f(z(t)), np.ones_like, 2))
        p = np.float32(p(polynomial.Polynomial([-(z1 + z0) / (z1 - z0), 2 / (z1 - z0)])).coef)
        t = z(np.linspace(-1, 1, 1001))
        pieces.append(p)
        worst = max(worst, np.max(np.abs(polynomial.polyval(t, p.astype(float)) - f(t))))
    print(f"/* error {max(worst, f(7.5)):.2g} */")
    print(f"_Alignas(64) static const float {name}[4][16] = {{")
    for power in (2, 1, 0):
        values = [float(p[power]).hex().replace("0000000p", "p") + "f" for p in pieces] + ["0"]
        print("  {" + "".join(("\n    " if i % 4 == 0 else " ") + v + "," for i, v in enumerate(values)) + "\n  },")
    print("  { 1.25f, 2, 7.75f },\n};")


print("""/* coefficients.h: the polynomials of functions.h, highest power first. Printed by coefficients.py. */
/* clang-format off */""")
erf_tail = lambda a: erfc(a / math.sqrt(2)) / 2
tanh_tail = lambda a: (1 - np.tanh(math.sqrt(2 / math.pi) * (a + 0.044715 * a ** 3))) / 2
gelu("gelu_erf", erf_tail, 16 / 3, 15)
gelu("gelu_tanh", tanh_tail, 16 / 3, 16)
gelu_pieces("gelu_erf_pieces", erf_tail)
gelu_pieces("gelu_tanh_pieces", tanh_tail)

# exp(r) = 1 + r + r^2 P(r), |r| <= ln(2) / 2
h = math.log(2) / 2 * 1.0001
p = minimax(lambda t: np.expm1(t * h) - t * h, lambda t: np.exp(-t * h), 4, factor=lambda t: (t * h) ** 2)
p = np.float32([k / h ** i for i, k in enumerate(p)])
r = np.linspace(-h, h, 100001)
e = np.max(np.abs((1 + r + r * r * polynomial.polyval(r, p.astype(float))) / np.exp(r) - 1))
table("exp_tail", f"relative error of 1 + r + r * r * P(r): {e:.2g}", p)

# tanh(x) = x + x * u * P(u), u = x^2, |x| <= 0.625
u1 = 0.625 ** 2
u = lambda t: np.maximum((t + 1) * (u1 / 2), 1e-12)
f = lambda v: np.tanh(np.sqrt(v)) / np.sqrt(v) - 1
p = minimax(lambda t: f(u(t)), lambda t: 1 / (1 + f(u(t))), 4, factor=u)
q = [0.0]
for k in p[::-1]:  # t = u * 2 / u1 - 1
    q = polynomial.polyadd(polynomial.polymul(q, [-1, 2 / u1]), [k])
q = np.float32(q)
v = np.linspace(1e-6, u1, 100001)
e = np.max(np.abs((1 + v * polynomial.polyval(v, q.astype(float))) / (1 + f(v)) - 1))
table("tanh_near", f"relative error of x + x * u * P(u): {e:.2g}", q)

# 255 * 2^r = 255 + r P(r), |r| <= 1/2: what a probability of 8 bits can see
p = minimax(lambda t: 255 * (np.exp2(t / 2) - 1), lambda t: np.exp2(-t / 2) / 255, 2, factor=lambda t: t / 2)
p = np.float32([255] + [k * 2 ** i for i, k in enumerate(p)])
r = np.linspace(-0.5, 0.5, 100001)
e = np.max(np.abs(polynomial.polyval(r, p.astype(float)) / 255 / np.exp2(r) - 1))
table("power_255", f"relative error of P(r) / 255: {e:.2g}; 255 exactly at 0", p)
