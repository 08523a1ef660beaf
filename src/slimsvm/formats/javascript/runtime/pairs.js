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
