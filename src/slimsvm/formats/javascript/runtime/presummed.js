// One weight vector per score.
const headScores = (u) => Array.from({ length: S }, (_, c) => quantity(u, c) + intercept[c]);
