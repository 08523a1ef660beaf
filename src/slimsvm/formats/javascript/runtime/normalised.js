const expit = (x) => 1 / (1 + Math.exp(-x));
// Probabilities that sum to one: a single p becomes [1 − p, p], and zeros become uniform.
function normalised(P) {
  if (P.length === 1) return [1 - P[0], P[0]];
  const total = P.reduce((sum, p) => sum + p, 0);
  return P.map((p) => (total === 0 ? 1 / P.length : p / total));
}
