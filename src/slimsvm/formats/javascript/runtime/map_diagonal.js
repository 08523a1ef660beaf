// A (x − a) + c with a diagonal A.
function mapped(x) {
  const u = new Float64Array(P);
  for (let i = 0; i < P; i++) u[i] = (x[i] - (map_shift ? map_shift[i] : 0)) * map_scale[i] + (map_offset ? map_offset[i] : 0);
  return u;
}
