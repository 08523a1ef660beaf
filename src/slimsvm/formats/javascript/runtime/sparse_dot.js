// u · z of a sparse vector
function quantity(u, j) {
  let t = 0;
  for (let a = starts[j]; a < starts[j + 1]; a++) t += u[columns[a]] * points[a];
  return t;
}
