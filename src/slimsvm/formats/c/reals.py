"""C text of the arithmetic in real numbers: types, exponential, square root, kernels. It does not need math.h.

In the C text of this package, `m_` and `M_` stand for the prefix of all names, and numbers between back quotes are
constants of the type of the tables.
"""

from __future__ import annotations

from math import factorial

TYPES = """
typedef $real m_real; /* the type of data, scores and probabilities */
typedef m_real m_input;
typedef m_real m_score;
typedef m_real m_fraction;
typedef m_real m_coordinate;
typedef m_real m_value;
typedef m_real m_sum;
"""

# For each type: the y above which e^-y is zero, the degree of the polynomial, and ln 2 as a sum of two parts. The first
# part has few bits, so that its products with whole numbers are exact.
EXP = {
    "float32": (87.0, 7, "0.693359375", "-2.12194440054690581e-4"),
    "float64": (708.0, 13, "0.693147180369123816490", "1.90821492927058770002e-10"),
}


def exponential(tables: str) -> str:
    """The C function of e^-y = 2^-n e^r with r = n ln 2 − y and |r| ≤ ½ ln 2, by the Taylor polynomial of e^r."""
    limit, degree, high, low = EXP[tables]
    steps = "\n".join(f"  e = e * r + `{1 / factorial(i)!r}`;" for i in range(degree - 1, -1, -1))
    return f"""
/* e^-y for y >= 0; NaN if y is NaN */
static inline m_real m_exp(m_real y) {{
  m_real r, e;
  int n;
  if (y >= `{limit}`) return 0;
  if (!(y > 0)) return 1 - y;
  n = (int)(y * `1.4426950408889634` + `0.5`);
  r = ((m_real)n * `{high}` - y) + (m_real)n * `{low}`;
  e = `{1 / factorial(degree)!r}`;
{steps}
  for (; n > 30; n -= 30) e *= `9.313225746154785e-10`;
  return e / (m_real)((uint32_t)1 << n);
}}
"""


def shortfall(tables: str) -> str:
    """The C function of 1 − e^-y, by its own series near zero, where the difference would cancel."""
    degree = EXP[tables][1]
    steps = "\n".join(f"  e = `{1 / factorial(i)!r}` - e * y;" for i in range(degree - 1, 0, -1))
    return f"""
/* 1 - e^-y for y >= 0 */
static inline m_real m_shortfall(m_real y) {{
  m_real e = `{1 / factorial(degree)!r}`;
  if (!(y < `0.34`)) return 1 - m_exp(y);
{steps}
  return e * y;
}}
"""


TANH = """
static inline m_real m_tanh(m_real v) {
  const m_real s = m_shortfall(2 * (v < 0 ? -v : v));
  return v < 0 ? -s / (2 - s) : s / (2 - s);
}
"""

POWER = """
static inline m_real m_power(m_real v) {
  m_real product = 1;
  int n;
  for (n = M_DEGREE; n; n >>= 1) {
    if (n & 1) product *= v;
    v *= v;
  }
  return product;
}
"""


def square_root(tables: str) -> str:
    """The C function of √v: v is scaled to [1, 4) by powers of four, then Newton's method improves a first guess."""
    least, most = {"float32": ("1e-36", "1e36"), "float64": ("1e-300", "1e300")}[tables]
    return f"""
static inline m_real m_sqrt(m_real v) {{
  m_real root, scale = 1;
  int i;
  if (!(v < `{most}`)) return v;
  if (v < `{least}`) return 0;
  while (v >= `4194304`) v *= `2.384185791015625e-7`, scale *= 2048;
  while (v >= 4) v *= `0.25`, scale *= 2;
  while (v < `2.384185791015625e-7`) v *= 4194304, scale *= `0.00048828125`;
  while (v < 1) v *= 4, scale *= `0.5`;
  root = v * `0.34` + `0.7`; /* an error of at most 6 % */
  for (i = 0; i < 4; ++i) root = `0.5` * (root + v / root);
  return root * scale;
}}
"""


PROFILES = {
    "rbf": "m_exp(M_GAMMA(j) * t)",
    "laplacian": "m_exp(M_GAMMA(j) * t)",
    "poly": "m_power(M_GAMMA(j) * t + M_COEF0)",
    "linear": "t",
    "sigmoid": "m_tanh(M_GAMMA(j) * t + M_COEF0)",
}
SHORTFALLS = {"rbf": "m_shortfall(M_GAMMA(j) * t)", "laplacian": "m_shortfall(M_GAMMA(j) * t)"}

TERMS = {
    "dot": "t += u[i] * z;",
    "squared_distance": "const m_real a = u[i] - z;\n    t += a * a;",
    "manhattan_distance": "const m_real a = u[i] - z;\n    t += a < 0 ? -a : a;",
}
FINISH = """
static inline m_score m_finish(m_sum sum, size_t c) {
  return sum + M_INTERCEPT(c);
}
"""

DISTANCE = """
/* the distance of x from site i in feature space, from the kernel value of its point */
static inline m_value m_distance(m_value own, m_value k, size_t i) {
  (void)own;
  return m_sqrt($square);
}
"""

UNITS = """
#define M_ONE `1`
#define M_LEAST `1e-7`
"""
WEIGHTS = """
typedef m_real m_weight;
#define M_WEIGHT_OF(p) (p)
#define M_FRACTION_OF(w) (w)
"""
FRACTIONS_ONLY = FRACTIONS = """
static inline m_fraction m_mul(m_fraction a, m_fraction b) { return a * b; }
static inline m_fraction m_div(m_fraction a, m_fraction b) { return a / b; }
"""
EXPONENT = """
static inline m_fraction m_exponent(m_score f, size_t c) {
  (void)c;
  return M_SLOPES(c) * f + M_LIFTS(c);
}
"""
SQUEEZE = """
/* the confidence of a class, between -1/3 and 1/3, which breaks ties of votes */
static inline m_score m_squeeze(m_sum v) {
  return v / (3 * ((v < 0 ? -v : v) + 1));
}
"""
BETWEEN = """
static inline m_fraction m_between(m_score f, size_t i) {
  return M_LEVELS(i) + (M_LEVELS(i + 1) - M_LEVELS(i)) * ((f - M_KNOTS(i)) / (M_KNOTS(i + 1) - M_KNOTS(i)));
}
"""
