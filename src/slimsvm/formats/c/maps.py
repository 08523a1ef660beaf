"""C text of the input map: the loop over the features that are used, and what it does for each of them."""

from __future__ import annotations

from string import Template

# x[i] is read for every feature i; its numbers in the tables are at $k.
EVERY = """for (i = 0; i < M_N_FEATURES; ++i) {
    $body
  }"""
RUNS = """for (r = 0; r < M_N_RUNS; ++r) {
    i += M_SKIPS(r); /* features that are not used */
    for (n = M_LENGTHS(r); n; --n, ++i, ++k) {
      $body
    }
  }"""
PLACE = """
/* the place of a feature among those that are used; 0 if it is not used */
static inline size_t m_place(size_t feature) {
  size_t r, first = 0, k = 0;
  for (r = 0; r < M_N_RUNS; ++r) {
    first += M_SKIPS(r);
    if (feature < first) return 0;
    if (feature < first + M_LENGTHS(r)) return k + feature - first;
    first += M_LENGTHS(r);
    k += M_LENGTHS(r);
  }
  return 0;
}
"""
DIAGONAL = """
static inline void m_map(const m_input *x, m_coordinate *u) {
  $counters
  $loop
}
"""
REALS = {
    "diagonal": "u[$k] = $centred * M_MAP_SCALE($k)$lifted;",
    "matrix": "for (f = 0; f < M_N_COORDINATES; ++f) u[f] += $centred * M_MAP_SCALE($k * M_N_COORDINATES + f);",
}
REAL_MATRIX = """
static inline void m_map(const m_input *x, m_coordinate *u) {
  $counters
  for (f = 0; f < M_N_COORDINATES; ++f) u[f] = $start;
  $loop
}
"""
INTEGERS = {
    "diagonal": "u[$k] = (m_coordinate)m_clamp("
    "m_round((int64_t)M_MAP_OFFSET($k) + (int32_t)x[i] * M_MAP_SCALE($k), M_MAP_BITS($k)), M_RANGE);",
    "matrix": "const int32_t v = x[i];\n"
    "if (v) for (f = 0; f < M_N_COORDINATES; ++f) sums[f] += v * M_MAP_SCALE($k * M_N_COORDINATES + f);",
}
INTEGER_MATRIX = """
static inline void m_map(const m_input *x, m_coordinate *u) {
  $sum sums[M_N_COORDINATES];
  $counters
  for (f = 0; f < M_N_COORDINATES; ++f) sums[f] = M_MAP_OFFSET(f);
  $loop
  for (f = 0; f < M_N_COORDINATES; ++f) u[f] = (m_coordinate)m_clamp(m_round(sums[f], M_MAP_BITS(f)), M_RANGE);
}
"""


def map_function(diagonal: bool, integers: bool, skips: bool, **words: str) -> str:
    """The function m_map. `skips` says whether it reads only some of the features; `words` fill in the text."""
    body = (INTEGERS if integers else REALS)["diagonal" if diagonal else "matrix"]
    function = DIAGONAL if diagonal else INTEGER_MATRIX if integers else REAL_MATRIX
    names = ["i = 0, k = 0, r, n"] if skips else ["i"]
    names += [] if diagonal else ["f"]
    words |= {"k": "k" if skips else "i", "counters": f"size_t {', '.join(names)};"}
    body = Template(Template(body).substitute(words)).substitute(words)  # `centred` has a $k of its own
    loop = Template(RUNS if skips else EVERY).substitute(body=body.replace("\n", "\n      " if skips else "\n    "))
    return Template(function).substitute(words, loop=loop)
