// moons-all.mjs: a kernel machine, written by slimsvm.
// Rbf(gamma=0.5000000000000006), 106 vectors, 2 features, answer: classes.
// Tables: float32, 1280 bytes.
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
const M = 106;
const P = 2;
const S = 1;
const N_FEATURES = 2;
const CLASSES = [0, 1];
const ZERO_IS_SECOND = true;
const model = Object.freeze({ task: "classes", classes: [0, 1], features: NAMES, nFeatures: 2, nVectors: 106, kernel: "rbf", digest: "cfb3f7aaee37609706c3b068f605251c73c19c2e7f793d304f4fd140a31667c6" });
const points = table("Float32", "WxBLv+D/ST8HL9i8Iou6vjBuRz/s/n6+7EVJP8axKL64aaA+wDSwvWnqlL8KJYI9Ryydv5RqGL/hkh8//8SoP4Md5j4dyAe/OYWmvwZCdr9ezCu/wgkGPwMviT4UWVe/0b6Pv8d8wL1yP+k+UGRhv279dL4oBrw+cXXLPj2gFL/dVms/cRMdvsBcmb9SzYc+C1knv5B3Vj9KO4m/tK05PgG2UT8W5u69VUmhPSSwDUBLr4g+erSIvCV0tL2EWs0+8+plvxdjMT8wWJA/dZGjPj0BKD8BVtS+idfAvkrLHkDLhHk/HBcLvlbqlr+vfg1AuYh7PvAZ+70s3Wm8fMWSPkkLXz/tqyS/k3Awv+/FOz/EA7C+CIAzP5sdib/km52+GarOPqmeM78NzUo/LmEvvsAOEr+1dOw+CeLfvrjMMz+VIyQ/+v2Cvrg1iL7rHQA/kNWCvndrEz8xLAS/XXJDP7+Iqz4RTvi+wzmmvlGTHj/oa04+pq7/vtAcwr9/hQNASyZ9v5RIzr6E2aC9T66ePvqTIL71IFE++b9tvyPyEj/+iiY/4kF7vn60E79t+y8/m+vPPUTUAL+fqgy/X5CKPhBNcL8gb5S/oWf0PPNamb6ER4q9AJ4nPx2JMb/Ht2Y+VnpmvRk/D7wZMEg/oYoYvp37gb8ucg6/x1OFPk0LL78IsHA/szFiPmAZar8V2ck965LAPujwU7+nDIy/c06TvVoZhb9lCKC+lQt3Pf3NlL6nZfs+jE8kvyG/jz/F6EG+p7odvSu2Mr7Z2S0/oVJdv8+uDb540/U9Es6AvwhyfzyHS0+/muiJP1q7uz51yBa/X1navtfUDT+GtEC/untEPuwKcb93tVQ/4vVkv5X1OD9TEA0/lmgIv/cyJ75kTRA+Sep9PzZ+/77IL3u+0F3GPn5s6D3Dmgu/RoUXP4zpYL+NbYQ/gHQCvpcGyD5N9hs+igZBvhOlvD6fxC2+hyJ4PzKa7Tw1UgG+V0IPv7dQpj5geWi+8shVPn9CMD1HSZe+bvg0P4wrd77Vsou/5rELP1z6YT+Yczi/d6S8vss0gj4kQpc/7RP+Po5R+b4HoIc//2covx7a6j5fe2Q/9zyuPbA5fD+XZ0u+XYMTvxGmWT8=");
const coef = table("Float32", "AAAgwQAAIMEAACDBAAAgwQAAIMEAACDBAAAgwS/dJ8AAACDBMWb9vwAAIMEAACDBAAAgwQAAIMEAACDBAAAgwQAAIMFEVq3Ate67vwAAIMEAACDBYXj1vgAAIMEAACDBAAAgwQAAIMEAACDBWZdvvwAAIMG0Zn6/AAAgwQAAIMEAACDBAAAgwQAAIMEAACDBAAAgwQAAIMEAACDBAAAgwQAAIMEAACDBAAAgwQAAIMEAACDBAAAgwQAAIMHdCMS/AAAgwQAAIMEAACDBAAAgwUulDsEAACDBAAAgwQAAIEFadnlAAAAgQQAAIEEAACBBAAAgQQAAIEGgVA5BAAAgQQAAIEEAACBBAAAgQQAAIEEAACBBAAAgQQAAIEEAACBBAAAgQV4ZGEEAACBBAAAgQQAAIEEAACBBAAAgQUqOdD8AACBBAAAgQQAAIEEAACBBAAAgQQAAIEFPCOQ/AAAgQQAAIEEAACBBAAAgQQAAIEEAACBBAAAgQQAAIEEAACBBAAAgQQAAIEEAACBBAAAgQZLpFEEAACBBAAAgQQAAIEEAACBBAAAgQQ==");
const intercept = table("Float64", "NCTO7pImzT8=");

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
const profile = (t, j) => Math.exp(-0.5000000000000006 * t);
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
