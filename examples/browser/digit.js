// A digit that is drawn becomes 28 × 28 numbers as MNIST has them, and the model answers after every stroke.
import { contributions, decision, model, predict } from "./digit.mjs";

const SIDE = 280, SEEN = 28, BOX = 20, COLUMNS = 20, LOUDEST = 10, REPEATS = 20;
const canvas = document.getElementById("canvas"), pen = canvas.getContext("2d", { willReadFrequently: true });
const seen = document.getElementById("seen").getContext("2d");
const byId = (id) => document.getElementById(id);

function clear() {
  pen.fillStyle = "black";
  pen.fillRect(0, 0, SIDE, SIDE);
  seen.fillStyle = "black";
  seen.fillRect(0, 0, SEEN, SEEN);
  byId("answer").textContent = "–";
  byId("time").textContent = "Draw something.";
  byId("scores").replaceChildren();
  byId("loud").replaceChildren();
  page.pixels = page.answer = null;
}

// The ink in a rectangle of the canvas that may start and end between pixels.
function mean(ink, x0, x1, y0, y1) {
  let sum = 0;
  for (let y = Math.floor(y0); y < Math.min(y1, SIDE); y++) {
    const height = Math.min(y + 1, y1) - Math.max(y, y0);
    for (let x = Math.floor(x0); x < Math.min(x1, SIDE); x++) {
      sum += ink[y * SIDE + x] * height * (Math.min(x + 1, x1) - Math.max(x, x0));
    }
  }
  return sum / ((x1 - x0) * (y1 - y0));
}

// As in MNIST: the longer side of the digit has 20 pixels, and its centre of mass is in the middle of 28 × 28.
function normalised() {
  const data = pen.getImageData(0, 0, SIDE, SIDE).data;
  const ink = Float64Array.from({ length: SIDE * SIDE }, (_, i) => data[4 * i] / 255);
  let left = SIDE, right = -1, top = SIDE, bottom = -1;
  ink.forEach((v, i) => {
    if (v < 0.05) return;
    const x = i % SIDE, y = (i - x) / SIDE;
    [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
  });
  if (right < 0) return null;
  const step = Math.max(right - left + 1, bottom - top + 1) / BOX;
  const width = Math.max(1, Math.round((right - left + 1) / step)), height = Math.max(1, Math.round((bottom - top + 1) / step));
  const small = [];
  let mass = 0, sumX = 0, sumY = 0;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const v = mean(ink, left + x * step, left + (x + 1) * step, top + y * step, top + (y + 1) * step);
      small.push(v);
      mass += v;
      sumX += v * (x + 0.5);
      sumY += v * (y + 0.5);
    }
  }
  const clamp = (v, size) => Math.max(0, Math.min(SEEN - size, v));
  const dx = clamp(Math.round(SEEN / 2 - sumX / mass), width), dy = clamp(Math.round(SEEN / 2 - sumY / mass), height);
  const pixels = new Float64Array(SEEN * SEEN);
  small.forEach((v, i) => (pixels[(Math.floor(i / width) + dy) * SEEN + (i % width) + dx] = Math.min(1, v)));
  return pixels;
}

// Microseconds of one call; of several rounds the fastest counts, because other programs only slow it down.
function timed(call) {
  const start = performance.now();
  for (let i = 0; i < REPEATS; i++) call();
  return ((performance.now() - start) / REPEATS) * 1000;
}

function answer() {
  const pixels = normalised();
  if (!pixels) return;
  const image = seen.createImageData(SEEN, SEEN);
  pixels.forEach((v, i) => image.data.set([255 * v, 255 * v, 255 * v, 255], 4 * i));
  seen.putImageData(image, 0, 0);
  const micros = Math.min(...[1, 2, 3].map(() => timed(() => predict(pixels))));
  const label = predict(pixels), scores = decision(pixels);
  byId("answer").textContent = String(label);
  byId("time").textContent = `${micros.toFixed(0)} µs per answer in this browser`;
  showScores(scores, label);
  showLoudest(pixels, model.classes.indexOf(label));
  Object.assign(page, { pixels: Array.from(pixels), answer: label, scores: Array.from(scores) });
}

function showScores(scores, label) {
  const least = Math.min(...scores), span = Math.max(...scores) - least || 1;
  byId("scores").replaceChildren(...model.classes.map((name, c) => {
    const row = document.createElement("div");
    row.className = name === label ? "bar best" : "bar";
    row.innerHTML = "<span></span><span><i></i></span><span></span>";
    row.children[0].textContent = name;
    row.querySelector("i").style.width = `${(100 * (scores[c] - least)) / span}%`;
    row.children[2].textContent = scores[c].toFixed(2);
    return row;
  }));
}

function showLoudest(pixels, place) {
  const all = contributions(pixels), n = model.classes.length;
  const own = Array.from({ length: model.nVectors }, (_, j) => [all[j * n + place], j]);
  own.sort((a, b) => b[0] - a[0]);
  byId("loud").replaceChildren(...own.slice(0, LOUDEST).map(([value, j]) => {
    const figure = document.createElement("figure"), picture = document.createElement("span");
    picture.style.backgroundSize = `${COLUMNS * 56}px`;
    picture.style.backgroundPosition = `${-(j % COLUMNS) * 56}px ${-Math.floor(j / COLUMNS) * 56}px`;
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", `vector ${j}`);
    figure.append(picture, `${value >= 0 ? "+" : ""}${value.toFixed(2)}`);
    return figure;
  }));
}

// What scripts may use: paint 28 × 28 numbers from 0 to 1, and read what the page made of them.
const page = { pixels: null, answer: null, scores: null };
page.paint = (numbers) => {
  clear();
  numbers.forEach((v, i) => {
    const level = Math.round(255 * v);
    pen.fillStyle = `rgb(${level},${level},${level})`;
    pen.fillRect((i % SEEN) * 10, Math.floor(i / SEEN) * 10, 10, 10);
  });
  answer();
};
window.digitPage = page;

let last = null;
const place = (event) => {
  const box = canvas.getBoundingClientRect();
  return [((event.clientX - box.left) / box.width) * SIDE, ((event.clientY - box.top) / box.height) * SIDE];
};
canvas.addEventListener("pointerdown", (event) => {
  last = place(event);
  canvas.setPointerCapture(event.pointerId);
  stroke(event);
});
canvas.addEventListener("pointermove", (event) => last && stroke(event));
for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (last = null));
let waiting = false;
function stroke(event) {
  const here = place(event);
  pen.strokeStyle = "white";
  pen.lineWidth = 22;
  pen.lineCap = pen.lineJoin = "round";
  pen.beginPath();
  pen.moveTo(...last);
  pen.lineTo(...here);
  pen.stroke();
  last = here;
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    answer();
  });
}

byId("clear").addEventListener("click", clear);
byId("vectors").textContent = model.nVectors;
const text = await (await fetch("digit.mjs")).text();
byId("size").textContent = (text.length / 1000).toFixed(0);
clear();
