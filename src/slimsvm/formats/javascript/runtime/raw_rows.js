const isMissing = (value) => value === null || value === undefined || Number.isNaN(value);
const bent = (logs, exponent, least) => (Math.abs(exponent) < least ? logs : Math.expm1(exponent * logs) / exponent);
const STEPS = {
  fill: (x, value, marker) => ((marker === null ? x !== x : x === marker) ? value : x),
  missing: (x, marker) => Number(marker === null ? x !== x : x === marker),
  scale: (x, shift, divisor, factor, offset) => ((x - shift) / divisor) * factor + offset,
  clip: (x, lower, upper) => (x < lower ? lower : x > upper ? upper : x),
  above: (x, threshold) => (x !== x ? x : Number(x > threshold)),
  function: (x, name) => FUNCTIONS[name](x),
  power: (x, method, exponent) => {
    if (method === "box-cox") return bent(Math.log(x), exponent, 1e-19);
    if (x >= 0) return bent(Math.log1p(x), exponent, Number.EPSILON);
    return x !== x ? x : -bent(Math.log1p(-x), 2 - exponent, Number.EPSILON);
  },
  quantiles: (x, ...settings) => share(x, ...settings),
};
const named = (column) => (NAMES === null ? `number ${column}` : shown(NAMES[column]));

function valueOf(row, column) {
  if (Array.isArray(row)) return row[column];
  if (!Object.hasOwn(row, NAMES[column])) {
    throw new TypeError(`The row has no column ${named(column)}, which the model reads.`);
  }
  return row[NAMES[column]];
}

function numberOf(value, part) {
  let x = isMissing(value) ? NaN : typeof value === "boolean" ? Number(value) : value;
  if (typeof x !== "number") throw new TypeError(`Column ${named(part.column)} must hold numbers. Got ${shown(value)}.`);
  for (const [name, ...settings] of part.steps) x = STEPS[name](x, ...settings);
  return x;
}

// The row of a look-up: −1 is a row of zeros.
function rowOf(value, part) {
  let found;
  if (part.isText) {
    if (!isMissing(value) && typeof value !== "string") {
      throw new TypeError(`Column ${named(part.column)} must hold text. Got ${shown(value)}.`);
    }
    found = isMissing(value) ? part.missing : part.rows.get(value) ?? part.unknown;
  } else {
    const x = numberOf(value, part);
    if (x !== x) found = part.missing;
    else if (part.rows instanceof Map) found = part.rows.get(x) ?? part.unknown;
    else found = part.rows[part.edges.reduce((code, edge) => code + Number(edge <= x), 0)];
  }
  if (found !== -2) return found;
  if (isMissing(value)) {
    throw new RangeError(`Column ${named(part.column)} is missing, and the model has no rule for missing values there.`);
  }
  throw new RangeError(
    `Column ${named(part.column)} has the category ${shown(value)}, which the model was not trained on.`
  );
}

// The numbers that the model takes, from the columns of a raw row.
function read(row) {
  const allowed = NAMES === null ? "" : ", or an object with the names of the columns";
  if (row === null || typeof row !== "object" || (NAMES === null && !Array.isArray(row))) {
    throw new TypeError(`The row must be an array of ${N_COLUMNS} values${allowed}. Got ${shown(row)}.`);
  }
  if (Array.isArray(row) && row.length !== N_COLUMNS) {
    throw new RangeError(`The row must have ${N_COLUMNS} values, the columns of the model. Got ${row.length}.`);
  }
  let x = new Float64Array(WIDTH);
  let place = 0;
  for (const part of PARTS) {
    const value = valueOf(row, part.column);
    if (part.rows) {
      const found = rowOf(value, part);
      if (found >= 0 && part.table) {
        for (let i = 0; i < part.width; i++) x[place + i] = part.table[found * part.width + i];
      } else if (found >= 0) x[place + found] = 1;
    } else {
      x[place] = numberOf(value, part);
      if (!Number.isFinite(x[place])) {
        throw new RangeError(
          `Column ${named(part.column)} is missing or has no finite result, and the model has no rule for it. ` +
            `Got ${shown(value)}.`
        );
      }
    }
    place += part.width;
  }
  if (MIXING) x = mixed(x);
  for (const norm of NORMS) divide(x, norm);
  return USED ? Float64Array.from(USED, (feature) => x[feature]) : x;
}

function mixed(x) {
  const { shift, scale, offset, isDiagonal } = MIXING;
  const result = Float64Array.from(offset);
  for (let k = 0; k < result.length; k++) {
    if (isDiagonal) result[k] += (x[k] - shift[k]) * scale[k];
    else for (let i = 0; i < x.length; i++) result[k] += (x[i] - shift[i]) * scale[k * x.length + i];
  }
  return result;
}

function divide(x, [kind, start, stop]) {
  let size = 0;
  for (let i = start; i < stop; i++) {
    const one = Math.abs(x[i]);
    size = kind === "l2" ? size + one * one : kind === "l1" ? size + one : Math.max(size, one);
  }
  size = kind === "l2" ? Math.sqrt(size) : size;
  if (size !== 0) for (let i = start; i < stop; i++) x[i] /= size;
}
