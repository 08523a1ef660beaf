"""C text of the arithmetic in integers, with the same names as in `reals.py`; `fixed.py` computes the same bits."""

from __future__ import annotations

# 2^-f = 1 − f q(f) for 0 ≤ f < 1: the coefficients of q times 2^32, with alternating signs; the error is below 1.2e-10.
EXP2 = (2977044471, 1031764940, 238387503, 41304524, 5712116, 639548, 48570)

TYPES = """
typedef int16_t m_input;      /* a feature; m_quantise converts a real number */
typedef int32_t m_score;      /* M_SCORE_BITS fraction bits; m_real converts to a real number */
typedef int64_t m_fraction;   /* 28 fraction bits */
typedef int16_t m_coordinate; /* a coordinate, in the unit of the points */
typedef int32_t m_value;      /* a kernel value, 30 fraction bits */
typedef int64_t m_sum;
"""

ROUND = """
/* v / 2^n, rounded */
static inline int64_t m_round(int64_t v, int n) {
  const int64_t half = ((int64_t)1 << n) >> 1;
  return v < 0 ? -((half - v) >> n) : (v + half) >> n;
}

static inline int64_t m_clamp(int64_t v, int64_t most) {
  return v > most ? most : v < -most ? -most : v;
}
"""

EXP = f"""
/* 2^-y with 30 fraction bits, for y with 32 */
static inline int32_t m_exp2(uint64_t y) {{
  const uint64_t f = y & 0xFFFFFFFFu;
  const int n = y >> 37 ? 32 : (int)(y >> 32);
  uint64_t q = {EXP2[6]}u;
  if (n > 30) return 0;
  q = {EXP2[5]}u - (q * f >> 32);
  q = {EXP2[4]}u - (q * f >> 32);
  q = {EXP2[3]}u - (q * f >> 32);
  q = {EXP2[2]}u - (q * f >> 32);
  q = {EXP2[1]}u - (q * f >> 32);
  q = {EXP2[0]}u - (q * f >> 32);
  q = ((uint64_t)1 << 32) - (q * f >> 32);
  return (int32_t)((q + ((uint64_t)2 << n)) >> (n + 2));
}}
"""

RADIAL = """
/* e^-(gamma t) */
static inline m_value m_profile(uint32_t t, size_t j) {
  (void)j;
  return m_exp2((uint64_t)t * (uint32_t)M_GAMMA(j) >> M_GAMMA_SHIFT);
}
"""
POWER = """
/* (gamma t + coef0)^degree, relative to its largest possible value */
static inline m_value m_profile(int32_t t, size_t j) {
  int64_t product = (int64_t)1 << 30, v = m_round((int64_t)t * M_GAMMA(j), M_GAMMA_SHIFT) + M_COEF0;
  int n;
  (void)j;
  v = m_clamp(v, product);
  for (n = M_DEGREE; n; n >>= 1) {
    if (n & 1) product = m_round(product * v, 30);
    v = m_round(v * v, 30);
  }
  return (m_value)product;
}
"""
TANH = """
/* tanh(gamma t + coef0) = (1 - e) / (1 + e), e = 2^-|v| */
static inline m_value m_profile(int32_t t, size_t j) {
  const int64_t v = m_round((int64_t)t * M_GAMMA(j), M_GAMMA_SHIFT) + M_COEF0, one = (int64_t)1 << 30;
  const int64_t e = m_exp2((uint64_t)(v < 0 ? -v : v)), tanh = ((one - e) << 30) / (one + e);
  (void)j;
  return (m_value)(v < 0 ? -tanh : tanh);
}
"""
PROFILES = {"rbf": RADIAL, "laplacian": RADIAL, "poly": POWER, "linear": POWER, "sigmoid": TANH}

TERMS = {
    "dot": "t += (int32_t)u[i] * z;",
    "squared_distance": "const int32_t a = (int32_t)u[i] - z;\n    t += (uint32_t)(a * a);",
    "manhattan_distance": "const int32_t a = (int32_t)u[i] - z;\n    t += (uint32_t)(a < 0 ? -a : a);",
}

FINISH = """
static inline m_score m_finish(m_sum sum, size_t c) {
  return (m_score)m_clamp(m_round(sum, M_SUM_SHIFT) + M_INTERCEPT(c), 0x7FFFFFFF);
}
"""
PRESUMMED_FINISH = """
static inline m_score m_finish(m_sum sum, size_t c) {
  return (m_score)m_clamp(m_round(sum * M_WEIGHT, M_WEIGHT_SHIFT) + M_INTERCEPT(c), 0x7FFFFFFF);
}
"""

NO_MAP = """
static inline void m_map(const m_input *x, m_coordinate *u) {
  size_t i;
  for (i = 0; i < M_N_COORDINATES; ++i) u[i] = (m_coordinate)m_clamp(x[i], M_RANGE);
}
"""
SQRT = """
/* the square root, rounded down */
static inline int32_t m_sqrt(int64_t v) {
  uint64_t rest = v < 0 ? 0 : (uint64_t)v, root = 0, bit;
  for (bit = (uint64_t)1 << 62; bit; bit >>= 2) {
    if (rest >= root + bit) {
      rest -= root + bit;
      root = (root >> 1) + bit;
    } else {
      root >>= 1;
    }
  }
  return (int32_t)root;
}
"""
DISTANCE = """
/* the distance of x from site i in feature space, from the kernel value of its point; 30 fraction bits */
static inline m_value m_distance(m_value own, m_value k, size_t i) {
  const int64_t one = (int64_t)1 << 30;
  (void)own;
  return m_sqrt($square);
}
"""

UNITS = """
#define M_ONE ((m_fraction)1 << 28)
#define M_LEAST ((m_fraction)27)
"""
# Coupling divides by squares of probabilities down to 1e-14, which integers cannot represent, so it uses double.
WEIGHTS = """
typedef double m_weight;
#define M_WEIGHT_OF(p) ((double)(p) / 268435456.0)
#define M_FRACTION_OF(w) ((m_fraction)((w) * 268435456.0 + 0.5))
"""
FRACTIONS_ONLY = """
static inline m_fraction m_mul(m_fraction a, m_fraction b) { return m_round(a * b, 28); }
static inline m_fraction m_div(m_fraction a, m_fraction b) { return a * M_ONE / b; }
"""
FRACTIONS = (
    FRACTIONS_ONLY
    + """
/* e^-y for y >= 0 */
static inline m_fraction m_exp(m_fraction y) {
  if (y >> 33) return 0;
  return m_round(m_exp2((uint64_t)y * 774541002u >> 25), 2);
}
"""
)
EXPONENT = """
static inline m_fraction m_exponent(m_score f, size_t c) {
  (void)c;
  return m_clamp(m_round((int64_t)f * M_SLOPES(c), M_SLOPE_SHIFT) + M_LIFTS(c)$step, (int64_t)64 << 28);
}
"""
SQUEEZE = """
/* the confidence of a class, between -1/3 and 1/3, which breaks ties of votes */
static inline m_score m_squeeze(m_sum v) {
  const int64_t size = v < 0 ? -v : v, share = (size << 24) / (3 * (size + INT64_C($one)));
  return (m_score)(v < 0 ? -share : share);
}
"""
BETWEEN = """
static inline m_fraction m_between(m_score f, size_t i) {
  const int64_t rise = (int64_t)M_LEVELS(i + 1) - M_LEVELS(i), run = (int64_t)M_KNOTS(i + 1) - M_KNOTS(i);
  return M_LEVELS(i) + rise * ((int64_t)f - M_KNOTS(i)) / run;
}
"""

QUANTISE = """
/* a real number as an integer input; numbers outside the range are clipped */
static inline m_input m_quantise(double value, size_t feature) {
  int n = M_INPUT_BITS($feature);
  (void)feature;
  for (; n > 0; --n) value *= 2;
  for (; n < 0; ++n) value /= 2;
  if (!(value > -32767)) return -32767;
  if (value > 32767) return 32767;
  return (m_input)(value < 0 ? value - 0.5 : value + 0.5);
}

/* a score as a real number */
static inline double m_real(m_score score) {
  return (double)score * $unit;
}
"""
