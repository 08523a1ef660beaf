// clouds-all.mjs: a kernel machine, written by slimsvm.
// Rbf(gamma=0.5000000000000004), 138 vectors, 2 features, answer: classes.
// Tables: float32, 2235 bytes.
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
const M = 138;
const P = 2;
const S = 3;
const N_FEATURES = 2;
const CLASSES = [0, 1, 2];
const ORDER = [0, 1, 2];
const SHAPE = "ovr";
const BREAK_TIES = false;
const model = Object.freeze({ task: "classes", classes: [0, 1, 2], features: NAMES, nFeatures: 2, nVectors: 138, kernel: "rbf", digest: "37d05fe697a8ad4225aa00bb035327cd8eafb03b2b8b101ae53a2258af25c1c3" });
const points = table("Float32", "pPMJvZBerb9+T8y8+yLLv9xrIL7oTSO/hvNXPmUEtL8FHsi+wWNhPJhPhL6ZxlK+M4gkwEyGuL4VxYE8gwT+vsoufL4+7uU+naBivh2yOT6X4yy7291APtxTW78uzx7AfFk+PkZ8RL86WEQ+xbPTv941Bz4bocg9BjCPvxBDqz7fiYm/WpLCPusNFsDgALG/6yYIv+JnKj9DmKG+OD6Wvxi2gj7Arxe+EvMJvUVkML5gmzG/OQucPSjJu71/yPq+kprtvl7LqL4hfd6+t6SBvavWeL6xqV6/Y5qVvxzzLD+hPtS+h8MKv4Buiz+J5oY/i9HoPvoUCj++Awi+b4Fbv+ji3D6VNbU+111iP3CC2j4O5pI/PPJ7P80kLz1JOqe+1vqOP3c2Tz+a/B4/vpwwP0nPcT/8MMk+DqvTPorjsb0js7s+yO9rPgBCoz6xQFU+NaCEveBNwL2lpb2+8QuEPiOEC7783TK/RL2aPxO+Rz8D0+w9fT6zv83JvT/oIBo//byHP9CvQz+roec/BoFLP8SYKb4sN0S9wvoWP8wUBMCcVgm9Vzl7vdYGED+ZxRE+AAIeQPtoqb6lyYg/dhLKPugJcz9Zrmw+rrwoP6/nzD7mcVI/yyYrP8kzaD/J8BI/8gSyPxPrqb8MeLg/Esn5v6ZvtT8ithE/DV11PTNkV7/ulzC+coMfvxF5Fj79HF8+88+6P9cfFD/Uqd4+fvD9PgV5Xb7axlO+k2mmvkynAb63WJi+cOgEvezn4j68AAG+jFAgP9+51z4YFlg+TJbCv2TeFkCs0di/pgIEP6Anzj6qqC49FGGiv8DiEz9auwc/fLC1PYB3uLzV9pc+uE4IP2R2mrwRII2/1glwP9Hfmj/8F7y+wB2Lvll/fDzarVe/cQYtPwdsnT9DTgc/geSDPZ7ePD/glAzA+mqhPoRSYT7xymI/d4z1Pv4wij49y+Q+fy5pP0PaQz9cEDC/dJOSPru5oj91fGQ/cICEPwY7bD+Ocqw/3aODP/CVuj8wdJA+lKA/P6dSMD+CpjU/aQ0sP9jwlD8J0IQ/V9MqP2VQQT9nSIA+r7W3PlNifj8KKrM+SCj3Pimx2j7AD9++/vQ/PoOJbT/o1VM/UNEIP05/1j5VufU/5x2aP49ROD8x2ky+OIH9PU1Q/j02KIU+0NacPnOnob5pXlI+YfKfvCGPLb78Dqe/BLK4Pu7nmj8jtIk/MgDTPptMNEA6jSe/AbYVQFHIRD+uZUI/o9ysvkdz8D3Tq0a/LvEfP5xDLb/b9Cc/4x7kPl39Zb2x/9w9bDE+PlMX477Q5s4+Y14gPz92FD8FgIg//p3lPY9czD8c21Q/R0qJPrBlAD2TOvQ+bULuPnDHKz7lbyNARA1rv041eT8eerw+rAfzvD5SV70PMnE+wDprP1UTZT8Sfwk/3rsVPpYeLz4zrCi9xxONPy1+Fj+nesc/yYwMQA2Bgz/n8hU/");
const coef = table("Float32", "AAAgQQAAAAAAACBBAAAAAAAAIEEAAAAAAAAgQQAAAAAAACBBAAAgQQAAIEEAAAAAZ7VHPAAAAAAAACBBAAAAAAAAIEEAACBBAAAgQQAAIEEAACBBAAAgQQAAAACD4/Y+AAAgQQAAAAAAACBBAAAAAAAAIEEAACBBAAAAAHEWv0AAAAAAAAAgQQAAAAB6TY8+AAAAAAAAIEGuqXRAAAAAAAAAIEEAACBBAAAgQQAAIEEAAAAAyaLJQAAAIEEAAAAAUMC5QAAAAAAAACBBAAAgQQAAIEEAAAAAAAAAAAAAIEEAACBBAAAAAAAAAIAAACBBAAAAgAAAIEEAACDBAAAAAAAAAIAAACBBAAAAgAAAIEEAAACAAAAgQXK7k78AAAAAAAAAgAAAIEEAAACAAAAgQQAAAIAAACBBAAAAgAAAIEEAAACAAAAgQQAAAIAAACBBAAAgwQAAIEEAACDBAAAgQQAAIMEAAAAAAAAAgAAAIEEAACDBAAAAAAAAAIAAACBBAAAAgAAAIEHs+fO8AAAgQQAAIMEAACBBcSGkwAAAAAAAACDBAAAgQQAAAIAAACBBHuBtvwAAAAAAAACAAAAgQQAAAIAAACBBAAAAgAAAIEEAAACAAAAgQQAAAIAAACBBAAAAgN7ZWT8AAACAEZFSPgAAAIAAACBB9AfRwAAAAAAAACDBAAAAAAAAIMEAACBBAAAAgO4sykAAAACAAAAgQQAAIMEAAAAAAAAgwQAAIEEAACDBAAAgQQAAAIDgR+9AAAAAgAAAIEEAACDBAAAAAL5K4r2YBvc+AAAAgAAAIEEAACDBAAAAAAAAAIAAACBBAAAgwQAAIEGYJ7jAAAAgQQAAIMEAAAAAAAAAgAAAIEEAACDBAAAAAAAAIMEAAAAAAAAAgAAAIEEAAACAAAAgQQAAAIC9U1c+AAAAgAAAIMEAAACAAAAgwQAAAIDLr5TAAAAAgAAAIMEAACDBAAAAgAAAAIAAACDBAAAAgAAAIMEAAACAAAAgwQAAAIAAACDBAAAAgAAAIMEAAACAAAAgwQAAAIAAACDBAAAAgAAAIMEAAACAAAAgwQAAAIAAACDBAAAAgAAAIMEAACDBAAAgwQAAAIAAACDBAAAAgAAAIMGgBWe+KYWowAAAAIAAACDBTNQQwQAAIMEAAACAAAAgwQAAIMEAACDBAAAgwQAAIMEAACDBYjJ1vgAAAIAC12TAI14RvzJj5r4dyyi++NmVvQAAAIAAACDBAAAgwQAAIMEAACDBAAAAgA5GCsEAAACAAAAAgAAAIMEAAACAAAAgwQAAIMEAAACAAAAAgAAAIMEAAACAAAAgwQAAAIAAACDBAAAgwQAAIMEAAACAAAAgwQAAAIDan6W/AD+vvwAAAIBhJx/AAAAgwQAAAIAAACDBAAAAgAAAIMEAAACAAAAgwQAAIMEAACDBAAAAgAAAIMHPzga/AAAAgAAAAIAAACDB");
const intercept = table("Float64", "UYCPd0j9wT+sTiEPCLegPwqjtFaNj7o/");
const blocks = table("Uint8", "HToz");

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
const profile = (t, j) => Math.exp(-0.5000000000000004 * t);
const kernel = (u, j) => profile(quantity(u, j), j);
// LIBSVM's layout: a block of vectors per class, and a coefficient for each other class.
function headScores(u) {
  const k = blocks.length;
  const sums = new Float64Array(k * (k - 1));
  for (let g = 0, j = 0; g < k; g++) {
    for (let end = j + blocks[g]; j < end; j++) {
      const value = kernel(u, j);
      for (let c = 0; c < k - 1; c++) sums[g * (k - 1) + c] += value * coef[j * (k - 1) + c];
    }
  }
  const scores = [];
  for (let i = 0; i < k; i++) {
    for (let j = i + 1; j < k; j++) {
      scores.push(sums[i * (k - 1) + j - 1] + sums[j * (k - 1) + i] + intercept[scores.length]);
    }
  }
  return scores;
}
function largest(values) {
  let best = 0;
  for (let i = 1; i < values.length; i++) if (values[i] > values[best]) best = i;
  return best;
}
// Scores of the pairs (0,1), (0,2), …, (1,2), …; a positive score is a vote for the first class of its pair.
const N_CLASSES = CLASSES.length;
const PAIRS = [];
for (let i = 0; i < N_CLASSES; i++) for (let j = i + 1; j < N_CLASSES; j++) PAIRS.push([i, j]);

// Pair scores in the order of the sorted classes, from those in the order of precedence.
function sortedPairs(scores) {
  const result = new Array(scores.length);
  const place = new Map(PAIRS.map(([i, j], at) => [i * N_CLASSES + j, at]));
  PAIRS.forEach(([i, j], at) => {
    const [a, b] = [ORDER[i], ORDER[j]];
    result[place.get(Math.min(a, b) * N_CLASSES + Math.max(a, b))] = a < b ? scores[at] : -scores[at];
  });
  return result;
}

function oneVsRest(pairs) {
  const votes = new Array(N_CLASSES).fill(0), sums = new Array(N_CLASSES).fill(0);
  PAIRS.forEach(([i, j], at) => {
    votes[pairs[at] >= 0 ? i : j] += 1;
    sums[i] += pairs[at];
    sums[j] -= pairs[at];
  });
  return votes.map((vote, i) => {
    const confidence = Math.min(Math.max(sums[i], -1e300), 1e300);
    return vote + confidence / (3 * (Math.abs(confidence) + 1));
  });
}

function decided(scores) {
  const pairs = sortedPairs(scores);
  if (N_CLASSES === 2) return -pairs[0];
  return SHAPE === "ovo" ? pairs : oneVsRest(pairs);
}

function classOf(scores) {
  if (BREAK_TIES && N_CLASSES > 2) return largest(oneVsRest(sortedPairs(scores)));
  const votes = new Array(N_CLASSES).fill(0);
  PAIRS.forEach(([i, j], at) => (votes[scores[at] > 0 ? i : j] += 1));
  return ORDER[largest(votes)];
}
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
export { model };
