// ‖u − z‖²
function quantity(u, j) {
  let t = 0;
  for (let i = 0, a = j * P; i < P; i++, a++) {
    const d = u[i] - points[a];
    t += d * d;
  }
  return Math.min(t, Number.MAX_VALUE);
}
