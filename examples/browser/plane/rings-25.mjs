// rings-25.mjs: a kernel machine, written by slimsvm.
// Rbf(gamma=0.5000000000000003), 25 vectors, 2 features, answer: classes.
// Tables: float32, 308 bytes.
// import { predict } from this file; predict(row) takes an array of numbers or an object of columns.
// The numbers of a table in base64: little-endian, and for integers q the number offset + step · q. Steps and offsets
// repeat along the table, one per column.
function table(type, text, steps, offsets) {
  const raw = atob(text);
  const bytes = Uint8Array.from(raw, (letter) => letter.charCodeAt(0));
  const width = { Float64: 8, Float32: 4, Int32: 4, Uint32: 4, Int16: 2, Uint16: 2, Int8: 1, Uint8: 1 }[type];
  const view = new DataView(bytes.buffer);
  const numbers = new Float64Array(bytes.length / width);
  for (let i = 0; i < numbers.length; i++) numbers[i] = view["get" + type](i * width, true);
  if (steps) {
    for (let i = 0; i < numbers.length; i++) {
      numbers[i] = numbers[i] * steps[i % steps.length] + (offsets ? offsets[i % offsets.length] : 0);
    }
  }
  return numbers;
}

function shown(value) {
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > 60 ? text.slice(0, 57) + "..." : text;
}
const NAMES = null;
const USED = null;
const M = 25;
const P = 2;
const S = 1;
const N_FEATURES = 2;
const CLASSES = [0, 1];
const ZERO_IS_SECOND = true;
const model = Object.freeze({ task: "classes", classes: [0, 1], features: NAMES, nFeatures: 2, nVectors: 25, kernel: "rbf", digest: "508661816ce5f92abfd3e8d7d861c1884b73debb6cbb442eb98d786938a26c7f" });
const points = table("Float32", "IiJeP2UFj79f1HU/udtdv5sG/7ydpIk/6L0Nv3Qypb+S+609p2aUv0EWkL+Unx++NGrOPu5ANj/0K5W/UccaPqO1pb+IQTS/G+ItvwKnbT8PMVg/9sE4P/clNT/DKWS/CA2QvzKfmr7tmpS8MQl+v7F/GT/vTZq+v8mxP28ufz56i6q+vl68PwiRl7/6zl8/MoVtv6zOXb8Myby/7hjwPmYktr/BrXc+0wGAPz7rcD8sAts/Rsh6vmzbgD/Ztw8+feYcP5Q2oz8=");
const coef = table("Float32", "ufjWwQpjs0Gc81dBwupywZaqvUHa00PCrVnXwDrO5kH0RjnBYAQwQMpYn0DvCzI/J4gbQhF1NsHT8oa/Z/giwazlAMGVhhfBfUt5QfWadEG2yK3B2+yLv/6TAcA5FylB1445wA==");
const intercept = table("Float64", "0nPpalLgBcA=");

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
const mapped = (x) => x;
// ‖u − z‖²
function quantity(u, j) {
  let t = 0;
  for (let i = 0, a = j * P; i < P; i++, a++) {
    const d = u[i] - points[a];
    t += d * d;
  }
  return Math.min(t, Number.MAX_VALUE);
}
const profile = (t, j) => Math.exp(-0.5000000000000003 * t);
const kernel = (u, j) => profile(quantity(u, j), j);
// Scores that share the vectors.
function headScores(u) {
  const sums = new Float64Array(S);
  for (let j = 0; j < M; j++) {
    const k = kernel(u, j);
    for (let c = 0, a = j * S; c < S; c++, a++) sums[c] += k * coef[a];
  }
  return Array.from(sums, (sum, c) => sum + intercept[c]);
}
function largest(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}
const decided = (scores) => scores[0];
const classOf = (scores) => Number(scores[0] > 0 || (ZERO_IS_SECOND && scores[0] === 0));
// The model's scores of a row, before an answer is made of them.
export function scores(row) {
  const found = headScores(mapped(read(row)));
  if (!found.every(Number.isFinite)) throw new RangeError("The scores of the row overflow. Scale the data.");
  return found;
}
// What decision_function gives in Python.
export const decision = (row) => decided(scores(row));
// What predict gives in Python.
export const predict = (row) => CLASSES[classOf(scores(row))];
// The kernel value of every vector.
export function kernelValues(row) {
  const u = mapped(read(row));
  return Float64Array.from({ length: M }, (_, j) => kernel(u, j));
}
// What every vector adds to every score: one number per vector and score, vector by vector.
export function contributions(row) {
  const values = kernelValues(row);
  return coef.map((c, a) => c * values[Math.floor(a / S)]);
}
export { model };
