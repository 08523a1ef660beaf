// A (x − a) + c; the table of A goes feature by feature.
function mapped(x) {
  const u = new Float64Array(P);
  for (let i = 0; i < x.length; i++) {
    const moved = map_shift ? x[i] - map_shift[i] : x[i];
    if (moved !== 0) for (let k = 0, a = i * P; k < P; k++, a++) u[k] += moved * map_scale[a];
  }
  if (map_offset) for (let k = 0; k < P; k++) u[k] += map_offset[k];
  return u;
}
