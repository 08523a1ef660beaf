const FUNCTIONS = {
  abs: Math.abs, arcsinh: Math.asinh, arctan: Math.atan, cbrt: Math.cbrt, cos: Math.cos, exp: Math.exp,
  expm1: Math.expm1, log: Math.log, log10: Math.log10, log1p: Math.log1p, log2: Math.log2, negative: (x) => -x,
  reciprocal: (x) => 1 / x, sin: Math.sin, sqrt: Math.sqrt, square: (x) => x * x, tanh: Math.tanh,
};
