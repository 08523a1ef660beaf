// Scores that share the vectors.
function headScores(u) {
  const sums = new Float64Array(S);
  for (let j = 0; j < M; j++) {
    const k = kernel(u, j);
    for (let c = 0, a = j * S; c < S; c++, a++) sums[c] += k * coef[a];
  }
  return Array.from(sums, (sum, c) => sum + intercept[c]);
}
