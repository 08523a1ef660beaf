// The kernel value of every vector.
export function kernelValues(row) {
  const u = mapped(read(row));
  return Float64Array.from({ length: M }, (_, j) => kernel(u, j));
}
