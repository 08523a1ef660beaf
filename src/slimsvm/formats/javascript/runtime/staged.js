// Early exit: the first stage whose score passes a threshold decides.
function headScores(u) {
  const values = new Float64Array(M);
  let done = 0, first = 0;
  for (let t = 0; t < sizes.length; t++) {
    for (; done < sizes[t]; done++) values[done] = kernel(u, done);
    const scores = Array.from({ length: S }, (_, c) => {
      let sum = intercept[t * S + c];
      for (let j = 0; j < sizes[t]; j++) sum += values[j] * coef[first + j * S + c];
      return sum;
    });
    first += sizes[t] * S;
    if (t === sizes.length - 1) return scores;
    if (S === 1) {
      if (scores[0] > upper[t]) return [scores[0] - Math.min(upper[t], 0)];
      if (scores[0] < lower[t]) return [scores[0] - Math.max(lower[t], 0)];
    } else {
      const [best, second] = Float64Array.from(scores).sort().reverse();
      if (best - second > upper[t]) return scores;
    }
  }
}
