// Platt's sigmoid of each score.
const chances = (scores) => normalised(scores.map((score, c) => secondOf(score * slopes[c] + lifts[c])));
