// LIBSVM's coupling: probabilities of k classes from R[i][j] = P(i | i or j).
const within = (p) => Math.min(Math.max(p, 1e-7), 1 - 1e-7);
function coupled(R) {
  const k = R.length;
  const Q = R.map((row, i) => row.map((_, j) => -R[j][i] * R[i][j]));
  for (let i = 0; i < k; i++) {
    Q[i][i] = 0;
    for (let j = 0; j < k; j++) if (j !== i) Q[i][i] += R[j][i] * R[j][i];
  }
  const p = new Array(k).fill(1 / k);
  for (let round = 0; round < Math.max(100, k); round++) {
    const Qp = Q.map((row) => row.reduce((sum, q, j) => sum + q * p[j], 0));
    let pQp = Qp.reduce((sum, v, i) => sum + p[i] * v, 0);
    if (Qp.every((v) => Math.abs(v - pQp) < 0.005 / k)) break;
    for (let t = 0; t < k; t++) {
      const step = (pQp - Qp[t]) / Q[t][t];
      p[t] += step;
      pQp = (pQp + step * (step * Q[t][t] + 2 * Qp[t])) / ((1 + step) * (1 + step));
      for (let j = 0; j < k; j++) {
        Qp[j] = (Qp[j] + step * Q[t][j]) / (1 + step);
        p[j] /= 1 + step;
      }
    }
  }
  return p;
}
