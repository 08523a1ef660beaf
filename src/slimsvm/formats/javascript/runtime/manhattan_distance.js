// ‖u − z‖₁
function quantity(u, j) {
  let t = 0;
  for (let i = 0, a = j * P; i < P; i++, a++) t += Math.abs(u[i] - points[a]);
  return Math.min(t, Number.MAX_VALUE);
}
