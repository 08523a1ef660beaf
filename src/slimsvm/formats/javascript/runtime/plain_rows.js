// The numbers of a row that the model reads.
function read(row) {
  const x = new Float64Array(USED ? USED.length : N_FEATURES);
  const listed = Array.isArray(row) || (ArrayBuffer.isView(row) && !(row instanceof DataView));
  if (listed) {
    if (row.length !== N_FEATURES) {
      throw new RangeError(`The row must have ${N_FEATURES} numbers, the features of the model. Got ${row.length}.`);
    }
  } else if (NAMES === null || row === null || typeof row !== "object") {
    const or = NAMES === null ? "" : ", or an object with the names of the features";
    throw new TypeError(`The row must be an array of ${N_FEATURES} numbers${or}. Got ${shown(row)}.`);
  }
  for (let i = 0; i < x.length; i++) {
    const feature = USED ? USED[i] : i;
    const value = listed ? row[feature] : Object.hasOwn(row, NAMES[feature]) ? row[NAMES[feature]] : undefined;
    if (typeof value !== "number" || !Number.isFinite(value)) {
      const name = NAMES === null ? `number ${feature}` : shown(NAMES[feature]);
      throw new TypeError(`Feature ${name} must be a finite number. Got ${shown(value)}.`);
    }
    x[i] = value;
  }
  return x;
}
