// A sigmoid per pair of classes, then coupling.
function chances(scores) {
  const k = CLASSES.length;
  const R = Array.from({ length: k }, () => new Array(k).fill(0));
  PAIRS.forEach(([i, j], at) => {
    R[i][j] = within(expit(-(scores[at] * slopes[at] + lifts[at])));
    R[j][i] = 1 - R[i][j];
  });
  const found = k === 2 ? [R[0][1], R[1][0]] : coupled(R);
  const P = new Array(k);
  found.forEach((p, i) => (P[ORDER[i]] = p));
  return P;
}
