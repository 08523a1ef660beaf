// Linear interpolation between knots, constant outside them.
function interpolated(x, xs, ys) {
  let low = 0, high = xs.length - 1;
  if (x < xs[low]) return ys[low];
  if (x >= xs[high]) return ys[high];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle;
    else high = middle;
  }
  return ys[low] + ((ys[high] - ys[low]) / (xs[high] - xs[low])) * (x - xs[low]);
}
