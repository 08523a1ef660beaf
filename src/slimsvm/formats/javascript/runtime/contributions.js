// What every vector adds to every score: one number per vector and score, vector by vector.
export function contributions(row) {
  const values = kernelValues(row);
  return coef.map((c, a) => c * values[Math.floor(a / S)]);
}
