// The model's scores of a row, before an answer is made of them.
export function scores(row) {
  const found = headScores(mapped(read(row)));
  if (!found.every(Number.isFinite)) throw new RangeError("The scores of the row overflow. Scale the data.");
  return found;
}
// What decision_function gives in Python.
export const decision = (row) => decided(scores(row));
