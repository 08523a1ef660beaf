function chances(scores) {
  const f = scores.map((score) => Math.min(Math.max(SLOPE * score, -1e300), 1e300));
  if (f.length === 1) return normalised([expit(f[0])]);
  const most = Math.max(...f);
  return normalised(f.map((v) => Math.exp(v - most)));
}
