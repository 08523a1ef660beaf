// An increasing, piecewise linear function of each score.
const chances = (scores) =>
  normalised(
    scores.map((score, c) => {
      const [first, end] = [knot_starts[c], knot_starts[c + 1]];
      return interpolated(score, knots.subarray(first, end), levels.subarray(first, end));
    })
  );
