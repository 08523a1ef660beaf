// u · z
function quantity(u, j) {
  let t = 0;
  for (let i = 0, a = j * P; i < P; i++, a++) t += u[i] * points[a];
  return t;
}
