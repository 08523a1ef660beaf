// Scores from distances in feature space to scaled vectors.
function headScores(u) {
  const own = IS_RADIAL ? 0 : profile(u.reduce((sum, v) => sum + v * v, 0), 0);
  const sums = new Float64Array(S);
  const found = Array.from({ length: M }, (_, j) => quantity(u, j));
  for (let i = 0; i < places.length; i++) {
    const t = found[places[i]];
    const square = IS_RADIAL ? -2 * scale[i] * Math.expm1(-GAMMA * t) : own - 2 * scale[i] * profile(t, 0);
    const distance = Math.sqrt(Math.max(square + squares[i], 0));
    for (let c = 0; c < S; c++) sums[c] += distance * coef[i * S + c];
  }
  return Array.from(sums, (sum, c) => sum + intercept[c]);
}
