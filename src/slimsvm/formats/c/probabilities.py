"""C text of calibrations, for both real numbers and integers."""

from __future__ import annotations

EXPIT = """
/* 1 / (1 + e^-v) */
static inline m_fraction m_expit(m_fraction v) {
  const m_fraction e = m_exp(v < 0 ? -v : v), p = m_div(M_ONE, M_ONE + e);
  return v < 0 ? m_mul(e, p) : p;
}
"""
SCALED = """
/* scales numbers of at least zero to sum to one */
static inline void m_scaled(m_fraction *p) {
  m_fraction total = 0;
  size_t c;
  for (c = 0; c < M_N_CLASSES; ++c) total += p[c];
  for (c = 0; c < M_N_CLASSES; ++c) p[c] = total > 0 ? m_div(p[c], total) : M_ONE / M_N_CLASSES;
}
"""
INTERPOLATE = """
/* an increasing function of a score: linear between its knots, constant outside */
static inline m_fraction m_level(m_score f, size_t c) {
  size_t i = M_KNOT_STARTS(c);
  const size_t end = M_KNOT_STARTS(c + 1);
  if (f < M_KNOTS(i)) return M_LEVELS(i);
  while (i + 1 < end && M_KNOTS(i + 1) <= f) ++i;
  return i + 1 < end ? m_between(f, i) : M_LEVELS(i);
}
"""
# The second method of Wu, Lin & Weng (2004), with LIBSVM's iteration and tolerance.
COUPLE = """
/* probabilities p of classes from those of pairs, r[i][j] = P(i if i or j), given for i < j */
static inline void m_couple(m_weight r[M_N_COUPLED][M_N_COUPLED], m_weight p[M_N_COUPLED]) {
  m_weight q[M_N_COUPLED][M_N_COUPLED], qp[M_N_COUPLED], pqp, step, most;
  size_t t, j;
  int round;
  for (t = 0; t < M_N_COUPLED; ++t) {
    for (j = t + 1; j < M_N_COUPLED; ++j) {
      if (r[t][j] < $least) r[t][j] = $least;
      if (r[t][j] > 1 - $least) r[t][j] = 1 - $least;
      r[j][t] = 1 - r[t][j];
    }
  }
  for (t = 0; t < M_N_COUPLED; ++t) {
    p[t] = (m_weight)1 / M_N_COUPLED;
    q[t][t] = 0;
    for (j = 0; j < M_N_COUPLED; ++j) {
      if (j == t) continue;
      q[t][t] += r[j][t] * r[j][t];
      q[t][j] = -r[j][t] * r[t][j];
    }
  }
  for (round = 0; round < M_N_ROUNDS; ++round) {
    pqp = 0;
    for (t = 0; t < M_N_COUPLED; ++t) {
      qp[t] = 0;
      for (j = 0; j < M_N_COUPLED; ++j) qp[t] += q[t][j] * p[j];
      pqp += p[t] * qp[t];
    }
    most = 0;
    for (t = 0; t < M_N_COUPLED; ++t) {
      const m_weight off = qp[t] < pqp ? pqp - qp[t] : qp[t] - pqp;
      if (off > most) most = off;
    }
    if (most < M_TOLERANCE) break;
    for (t = 0; t < M_N_COUPLED; ++t) {
      step = (pqp - qp[t]) / q[t][t];
      p[t] += step;
      pqp = (pqp + step * (step * q[t][t] + 2 * qp[t])) / ((1 + step) * (1 + step));
      for (j = 0; j < M_N_COUPLED; ++j) {
        qp[j] = (qp[j] + step * q[t][j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
}
"""
CLIPPED = """
/* a pair's probability, kept away from 0 and 1 */
static inline m_fraction m_clipped(m_fraction p) {
  return p < M_LEAST ? M_LEAST : p > M_ONE - M_LEAST ? M_ONE - M_LEAST : p;
}
"""
COUPLE_TWO = """
/* the coupled probability of the second of two classes, from the probability of the first */
static inline m_fraction m_couple_two(m_fraction first) {
  m_weight r[2][2], p[2];
  r[0][1] = M_WEIGHT_OF(first);
  m_couple(r, p);
  return M_FRACTION_OF(p[1]);
}
"""
PROBABILITIES = """
/* the probabilities of the classes */
static inline void m_probabilities(const m_input x[M_N_FEATURES], m_fraction p[M_N_CLASSES]) {
  m_score scores[M_N_SCORES];
  $locals
  m_scores(x, scores);
  $body
}
"""
# `f` are the scores that the calibration reads: the head's scores, or the decision per class.
BODIES = {
    "one": """p[1] = $probability;
  p[0] = M_ONE - p[1];""",
    "several": """for (c = 0; c < M_N_CLASSES; ++c) p[c] = $probability;
  m_scaled(p);""",
    "softmax": """for (c = 1; c < M_N_CLASSES; ++c)
    if (m_exponent(f[c], c) > most) most = m_exponent(f[c], c);
  for (c = 0; c < M_N_CLASSES; ++c) p[c] = m_exp(most - m_exponent(f[c], c));
  m_scaled(p);""",
    "pair": """first = m_clipped(m_expit(-m_exponent(f[0], 0)));
  p[M_ORDER(0)] = first;
  p[M_ORDER(1)] = M_ONE - first;""",
    "pairs": """for (c = 0; c < M_N_CLASSES; ++c) {
    for (j = c + 1; j < M_N_CLASSES; ++j) {
      const size_t pair = m_pair(c, j);
      r[c][j] = M_WEIGHT_OF(m_expit(-m_exponent(f[pair], pair)));
    }
  }
  m_couple(r, coupled);
  for (c = 0; c < M_N_CLASSES; ++c) p[M_ORDER(c)] = M_FRACTION_OF(coupled[c]);""",
}
