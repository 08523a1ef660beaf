// LIBSVM's layout: a block of vectors per class, and a coefficient for each other class.
function headScores(u) {
  const k = blocks.length;
  const sums = new Float64Array(k * (k - 1));
  for (let g = 0, j = 0; g < k; g++) {
    for (let end = j + blocks[g]; j < end; j++) {
      const value = kernel(u, j);
      for (let c = 0; c < k - 1; c++) sums[g * (k - 1) + c] += value * coef[j * (k - 1) + c];
    }
  }
  const scores = [];
  for (let i = 0; i < k; i++) {
    for (let j = i + 1; j < k; j++) {
      scores.push(sums[i * (k - 1) + j - 1] + sums[j * (k - 1) + i] + intercept[scores.length]);
    }
  }
  return scores;
}
