// ‖u − z‖² of a sparse vector: ‖u‖², and what its numbers change
let lastRow = null, lastSize = 0;
function quantity(u, j) {
  if (u !== lastRow) [lastRow, lastSize] = [u, u.reduce((sum, v) => sum + v * v, 0)];
  let t = lastSize;
  for (let a = starts[j]; a < starts[j + 1]; a++) t += points[a] * (points[a] - 2 * u[columns[a]]);
  return Math.min(Math.max(t, 0), Number.MAX_VALUE);
}
