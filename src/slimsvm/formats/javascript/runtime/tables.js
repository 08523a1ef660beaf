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
