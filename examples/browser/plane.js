// Decisions of an SVC and of a compressed model, and the points that the user sets.
const REACH = 3, SIDE = 420, GRID = 84, REPEATS = 50000;
const COLOURS = [[31, 111, 180], [214, 111, 35], [44, 145, 84]];
const byId = (id) => document.getElementById(id);
const state = { points: [], models: {}, data: [], cursor: [0, 0], shown: false };
const page = (window.planePage = { state });

const toPixel = ([x, y]) => [((x + REACH) / (2 * REACH)) * SIDE, ((REACH - y) / (2 * REACH)) * SIDE];
const toPlane = (px, py) => [(px / SIDE) * 2 * REACH - REACH, REACH - (py / SIDE) * 2 * REACH];

// Without points of the user there is nothing to compare but the grid.
function agreement(full, small, rows) {
  return rows.filter((row) => full.predict(row) === small.predict(row)).length / rows.length;
}

function draw(canvas, model) {
  const brush = canvas.getContext("2d"), cell = SIDE / GRID;
  brush.clearRect(0, 0, SIDE, SIDE);
  for (let i = 0; i < GRID; i++) {
    for (let j = 0; j < GRID; j++) {
      const label = model.predict(toPlane((i + 0.5) * cell, (j + 0.5) * cell));
      brush.fillStyle = `rgba(${COLOURS[label].join(",")},0.32)`;
      brush.fillRect(i * cell, j * cell, cell, cell);
    }
  }
  for (const [x, y, label] of state.data) dot(brush, [x, y], label, 2.2, false);
  for (const point of state.points) dot(brush, point, model.predict(point), 7, true);
  if (state.shown) {
    const [px, py] = toPixel(state.cursor);
    brush.strokeStyle = "black";
    brush.lineWidth = 1.5;
    brush.beginPath();
    brush.moveTo(px - 9, py);
    brush.lineTo(px + 9, py);
    brush.moveTo(px, py - 9);
    brush.lineTo(px, py + 9);
    brush.stroke();
  }
}

function dot(brush, point, label, radius, ring) {
  brush.beginPath();
  brush.arc(...toPixel(point), radius, 0, 2 * Math.PI);
  brush.fillStyle = `rgb(${COLOURS[label].join(",")})`;
  brush.fill();
  if (!ring) return;
  brush.lineWidth = 2.5;
  brush.strokeStyle = "white";
  brush.stroke();
}

function micros(model) {
  const rows = Array.from({ length: 64 }, (_, i) => [Math.cos(i), Math.sin(1.7 * i)]);
  const n = Math.max(64, Math.round(REPEATS / model.model.nVectors));
  const rounds = [1, 2, 3, 4, 5].map(() => {
    const start = performance.now();
    for (let i = 0; i < n; i++) model.predict(rows[i % 64]);
    return ((performance.now() - start) / n) * 1000;
  });
  return Math.min(...rounds); // other programs only slow it down
}

function show() {
  const { full, small } = state.models;
  draw(byId("full"), full);
  draw(byId("small"), small);
  const grid = [];
  for (let i = 0; i < 40; i++) for (let j = 0; j < 40; j++) grid.push(toPlane(((i + 0.5) * SIDE) / 40, ((j + 0.5) * SIDE) / 40));
  const labelled = state.data.map(([x, y]) => [x, y]);
  const right = (model) => state.data.filter(([x, y, label]) => model.predict([x, y]) === label).length / state.data.length;
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  const rows = [
    ["Vectors", full.model.nVectors, small.model.nVectors],
    ["µs per answer, here", micros(full).toFixed(2), micros(small).toFixed(2)],
    ["Right on the points shown", percent(right(full)), percent(right(small))],
    ["Same answer on those points", "", percent(agreement(full, small, labelled))],
    ["Same answer all over the picture", "", percent(agreement(full, small, grid))],
  ];
  if (state.points.length) rows.push(["Same answer on your points", "", percent(agreement(full, small, state.points))]);
  byId("figures").replaceChildren(...rows.map((row) => {
    const line = document.createElement("tr");
    row.forEach((text, i) => {
      const cell = document.createElement(i ? "td" : "th");
      cell.textContent = text;
      line.append(cell);
    });
    return line;
  }));
  byId("name-full").textContent = `SVC, ${full.model.nVectors} support vectors`;
  byId("name-small").textContent = `Compressed to ${small.model.nVectors} vectors`;
}

function add(point) {
  state.points.push(point);
  const { full, small } = state.models;
  byId("said").textContent = `Point ${state.points.length}: the SVC says class ${full.predict(point)}, the compressed model class ${small.predict(point)}.`;
  show();
}

async function load() {
  const name = byId("set").value, size = byId("vectors").value;
  const [full, small, text] = await Promise.all([
    import(`./plane/${name}-all.mjs`),
    import(`./plane/${name}-${size}.mjs`),
    fetch(`plane/${name}.csv`).then((answer) => answer.text()),
  ]);
  Object.assign(state, { models: { full, small }, data: text.trim().split("\n").map((line) => line.split(",").map(Number)) });
  show();
}

for (const id of ["full", "small"]) {
  const canvas = byId(id);
  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect();
    add(toPlane(((event.clientX - box.left) / box.width) * SIDE, ((event.clientY - box.top) / box.height) * SIDE));
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-0.15, 0], ArrowRight: [0.15, 0], ArrowUp: [0, 0.15], ArrowDown: [0, -0.15] }[event.key];
    if (step) {
      event.preventDefault();
      state.shown = true;
      state.cursor = state.cursor.map((v, i) => Math.max(-REACH, Math.min(REACH, v + step[i])));
      show();
    } else if (event.key === "Enter") add([...state.cursor]);
  });
}
byId("set").addEventListener("change", () => {
  state.points = [];
  load();
});
byId("vectors").addEventListener("change", load);
byId("clear").addEventListener("click", () => {
  state.points = [];
  show();
});
await load();
page.ready = true;
