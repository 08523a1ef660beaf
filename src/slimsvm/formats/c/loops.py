"""C text for both real numbers and integers: loops over points, heads and answers."""

from __future__ import annotations

DENSE = """
/* $what */
static inline $t m_$name(const m_coordinate *u, size_t j) {
  $t t = 0;
  size_t i;
  for (i = 0; i < M_N_COORDINATES; ++i) {
    const $z z = $point(j * M_N_COORDINATES + i)$step;
    $term
  }
  return t;
}
"""
# For sparse points: a dot product reads the stored entries, a distance all coordinates of x.
SPARSE = {
    "dot": """
/* $what */
static inline $t m_$name(const m_coordinate *u, size_t j) {
  $t t = 0;
  size_t e;
  for (e = M_STARTS(j); e < M_STARTS(j + 1); ++e) {
    const size_t i = M_COLUMNS(e);
    const $z z = $point(e)$step;
    $term
  }
  return t;
}
""",
    "distance": """
/* $what */
static inline $t m_$name(const m_coordinate *u, size_t j) {
  $t t = 0;
  size_t i, e = M_STARTS(j);
  const size_t end = M_STARTS(j + 1);
  for (i = 0; i < M_N_COORDINATES; ++i) {
    const int here = e < end && M_COLUMNS(e) == i;
    const $z z = here ? ($z)($point(e)$step) : 0;
    $term
    e += here ? 1u : 0u;
  }
  return t;
}
""",
}
WHAT = {"dot": "x.z", "squared_distance": "|x - z|^2", "manhattan_distance": "the sum of |x - z|"}

KERNEL = """
static inline m_value m_kernel(const m_coordinate *u, size_t j) {
  const $t t = m_quantity(u, j);
  return $value;
}
"""
OWN = """
/* k(x, x) */
static inline m_value m_own(const m_coordinate *u) {
  const size_t j = 0;
  $t t = 0;
  size_t i;
  for (i = 0; i < M_N_COORDINATES; ++i) {
    const $z z = u[i];
    $term
  }
  (void)j;
  return $value;
}
"""

SCORES = {
    "presummed": """
/* fills in the scores and returns the number of $counted */
static inline int m_scores(const m_input x[M_N_FEATURES], m_score scores[M_N_SCORES]) {
  size_t c;
  $mapped
  for (c = 0; c < M_N_SCORES; ++c) scores[c] = m_finish(m_quantity(u, c), c);
  return M_N_POINTS;
}
""",
    "linear": """
/* fills in the scores and returns the number of $counted */
static inline int m_scores(const m_input x[M_N_FEATURES], m_score scores[M_N_SCORES]) {
  m_sum sums[M_N_SCORES] = {0};
  size_t j, c;
  $mapped
  for (j = 0; j < M_N_POINTS; ++j) {
    const m_value k = m_kernel(u, j);
    for (c = 0; c < M_N_SCORES; ++c) sums[c] += (m_sum)k * M_COEF(j * M_N_SCORES + c);
  }
  for (c = 0; c < M_N_SCORES; ++c) scores[c] = m_finish(sums[c], c);
  return M_N_POINTS;
}
""",
    "pairwise": """
/* fills in the scores and returns the number of $counted */
static inline int m_scores(const m_input x[M_N_FEATURES], m_score scores[M_N_SCORES]) {
  m_sum sums[M_N_SCORES] = {0};
  size_t j = 0, n, g, c;
  $mapped
  for (g = 0; g < M_N_CLASSES; ++g) {
    for (n = M_BLOCKS(g); n; --n, ++j) {
      const m_value k = m_kernel(u, j);
      for (c = 0; c < M_N_CLASSES - 1; ++c) { /* against the other classes in turn */
        const size_t pair = c < g ? m_pair(c, g) : m_pair(g, c + 1);
        sums[pair] += (m_sum)k * M_COEF(j * (M_N_CLASSES - 1) + c);
      }
    }
  }
  for (c = 0; c < M_N_SCORES; ++c) scores[c] = m_finish(sums[c], c);
  return M_N_POINTS;
}
""",
    "mirror": """
/* fills in the scores and returns the number of $counted */
static inline int m_scores(const m_input x[M_N_FEATURES], m_score scores[M_N_SCORES]) {
  m_sum sums[M_N_SCORES] = {0};
  m_value k[M_N_POINTS];
  size_t j, c;
  $mapped
  $own
  for (j = 0; j < M_N_POINTS; ++j) k[j] = m_kernel(u, j);
  for (j = 0; j < M_N_SITES; ++j) {
    const m_value distance = m_distance(own, k[M_PLACES(j)], j);
    for (c = 0; c < M_N_SCORES; ++c) sums[c] += (m_sum)distance * M_COEF(j * M_N_SCORES + c);
  }
  for (c = 0; c < M_N_SCORES; ++c) scores[c] = m_finish(sums[c], c);
  return M_N_POINTS;
}
""",
    "staged": """
/* fills in the scores and returns the number of $counted */
static inline int m_scores(const m_input x[M_N_FEATURES], m_score scores[M_N_SCORES]) {
  m_value k[M_N_POINTS];
  size_t t, j = 0, i, c, first = 0, n = 0;
  $mapped
  for (t = 0; t < M_N_STAGES; ++t) {
    n = M_SIZES(t);
    for (; j < n; ++j) k[j] = m_kernel(u, j); /* kernel values that this stage adds */
    for (c = 0; c < M_N_SCORES; ++c) {
      m_sum sum = 0;
      for (i = 0; i < n; ++i) sum += (m_sum)k[i] * M_COEF(first + i * M_N_SCORES + c);
      scores[c] = m_finish(sum, t * M_N_SCORES + c);
    }
    first += n * M_N_SCORES;
    if (t == M_N_STAGES - 1) break;
    $sure
  }
  return (int)n;
}
""",
}
# A negative upper or positive lower threshold is subtracted, so that the sign of the score gives the prediction.
SURE = {
    "two": """if (scores[0] > M_UPPER(t)) {
      if (M_UPPER(t) < 0) scores[0] -= M_UPPER(t);
      break;
    }
    if (scores[0] < M_LOWER(t)) {
      if (M_LOWER(t) > 0) scores[0] -= M_LOWER(t);
      break;
    }""",
    "several": """if (m_lead(scores) > M_UPPER(t)) break;""",
}
LEAD = """
/* the difference of the two largest scores */
static inline m_score m_lead(const m_score *scores) {
  m_score best = scores[0] > scores[1] ? scores[0] : scores[1], second = scores[0] > scores[1] ? scores[1] : scores[0];
  size_t c;
  for (c = 2; c < M_N_SCORES; ++c) {
    if (scores[c] > best) {
      second = best;
      best = scores[c];
    } else if (scores[c] > second) {
      second = scores[c];
    }
  }
  return best - second;
}
"""
PAIR = """
/* the position of the pair of classes i < j in (0,1), (0,2), ..., (1,2), ... */
static inline size_t m_pair(size_t i, size_t j) {
  return i * (2 * M_N_CLASSES - i - 1) / 2 + j - i - 1;
}
"""

CLASS = {
    "sign": """
/* the class of scores, as a position in the labels */
static inline int m_class(const m_score *scores) {
  return scores[0] $above 0 ? 1 : scores[0] $below 0 ? 0 : -1;
}
""",
    "largest": """
/* the class of scores, as a position in the labels */
static inline int m_class(const m_score *scores) {
  size_t c, best = 0;
  for (c = 0; c < M_N_CLASSES; ++c) {
    if (scores[c] > scores[best]) best = c;
    if (!(scores[c] <= scores[best])) return -1;
  }
  return (int)best;
}
""",
    "votes": """
/* the class of scores, as a position in the labels */
static inline int m_class(const m_score *scores) {
  int votes[M_N_CLASSES] = {0};
  size_t i, j, best = 0;
  for (i = 0; i < M_N_CLASSES; ++i) {
    for (j = i + 1; j < M_N_CLASSES; ++j) {
      const m_score score = scores[m_pair(i, j)];
      ++votes[score > 0 ? i : j];
      $check
    }
  }
  for (i = 1; i < M_N_CLASSES; ++i)
    if (votes[i] > votes[best]) best = i;
  return (int)M_ORDER(best);
}
""",
    "decision": """
/* the class of scores, as a position in the labels */
static inline int m_class(const m_score *scores) {
  m_score decision[M_N_CLASSES];
  size_t c, best = 0;
  m_decision(scores, decision);
  for (c = 0; c < M_N_CLASSES; ++c) {
    if (decision[c] > decision[best]) best = c;
    if (!(decision[c] <= decision[best])) return -1;
  }
  return (int)best;
}
""",
}
DECISION = """
/* scikit-learn's decision per class from the scores of pairs: votes plus a confidence */
static inline void m_decision(const m_score *scores, m_score decision[M_N_CLASSES]) {
  m_sum sure[M_N_CLASSES] = {0};
  int votes[M_N_CLASSES] = {0};
  size_t i, j;
  for (i = 0; i < M_N_CLASSES; ++i) {
    for (j = i + 1; j < M_N_CLASSES; ++j) {
      const m_score score = scores[m_pair(i, j)];
      const size_t a = M_ORDER(i), b = M_ORDER(j);
      ++votes[score > 0 || (a < b && score >= 0) ? a : b];
      sure[a] += score;
      sure[b] -= score;
    }
  }
  for (i = 0; i < M_N_CLASSES; ++i) decision[i] = (m_score)votes[i]$vote + m_squeeze(sure[i]);
}
"""

PREDICT = {
    "class": """
/* the class, as a position in the labels$unknown */
static inline int m_predict(const m_input x[M_N_FEATURES]) {
  m_score scores[M_N_SCORES];
  m_scores(x, scores);
  return m_class(scores);
}
""",
    "probable": """
/* the most probable class, as a position in the labels$unknown */
static inline int m_predict(const m_input x[M_N_FEATURES]) {
  m_fraction p[M_N_CLASSES];
  size_t c, best = 0;
  m_probabilities(x, p);
  for (c = 0; c < M_N_CLASSES; ++c) {
    if (p[c] > p[best]) best = c;
    if (!(p[c] <= p[best])) return -1;
  }
  return (int)best;
}
""",
    "value": """
/* the value$scaled */
static inline m_score m_predict(const m_input x[M_N_FEATURES]) {
  m_score scores[M_N_SCORES];
  m_scores(x, scores);
  return scores[0];
}
""",
    "inlier": """
/* +1 for inliers, -1 for outliers */
static inline int m_predict(const m_input x[M_N_FEATURES]) {
  m_score scores[M_N_SCORES];
  m_scores(x, scores);
  return scores[0] > 0 ? 1 : -1;
}
""",
}
