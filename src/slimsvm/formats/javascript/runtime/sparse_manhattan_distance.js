// ‖u − z‖₁ of a sparse vector: ‖u‖₁, and what its numbers change
let lastRow = null, lastSize = 0;
function quantity(u, j) {
  if (u !== lastRow) [lastRow, lastSize] = [u, u.reduce((sum, v) => sum + Math.abs(v), 0)];
  let t = lastSize;
  for (let a = starts[j]; a < starts[j + 1]; a++) {
    const v = u[columns[a]];
    t += Math.abs(v - points[a]) - Math.abs(v);
  }
  return Math.min(Math.max(t, 0), Number.MAX_VALUE);
}
