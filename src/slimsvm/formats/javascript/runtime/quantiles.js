// The share of training values below x, or its normal deviate.
function share(x, quantiles, references, isNormal) {
  if (x !== x) return x;
  const last = quantiles.length - 1;
  const reach = isNormal ? 1e-7 : 0;
  let result;
  if (isNormal ? x - reach < quantiles[0] : x === quantiles[0]) result = 0;
  else if (isNormal ? x + reach > quantiles[last] : x === quantiles[last]) result = 1;
  else {
    const down = (numbers) => Float64Array.from(numbers, (_, i) => -numbers[last - i]);
    result = 0.5 * (interpolated(x, quantiles, references) - interpolated(-x, down(quantiles), down(references)));
  }
  if (!isNormal) return result;
  const end = 1e-7 - Number.EPSILON;
  return Math.min(Math.max(deviate(result), deviate(end)), -deviate(end));
}

// The probability that a standard normal variable is below −x, for x ≥ 0: a series near zero, else a continued fraction.
function tail(x) {
  const density = Math.exp(-0.5 * x * x) / Math.sqrt(2 * Math.PI);
  if (x < 3) {
    let term = x, sum = x;
    for (let n = 1; term > 1e-18 * sum; n++) {
      term *= (x * x) / (2 * n + 1);
      sum += term;
    }
    return 0.5 - density * sum;
  }
  let fraction = 0;
  for (let n = 120; n > 0; n--) fraction = n / (x + fraction);
  return density / (x + fraction);
}

// The normal deviate of a share: bisection to the root's neighbourhood, then Newton's steps.
function deviate(p) {
  if (p === 0.5) return 0;
  const q = Math.min(p, 1 - p);
  if (q <= 0) return p < 0.5 ? -Infinity : Infinity;
  let low = 0, high = 40;
  for (let i = 0; i < 30; i++) {
    const middle = 0.5 * (low + high);
    if (tail(middle) > q) low = middle;
    else high = middle;
  }
  let x = 0.5 * (low + high);
  for (let i = 0; i < 3; i++) x += ((tail(x) - q) * Math.sqrt(2 * Math.PI)) / Math.exp(-0.5 * x * x);
  return p < 0.5 ? -x : x;
}
