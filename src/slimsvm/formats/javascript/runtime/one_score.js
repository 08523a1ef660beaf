const decided = (scores) => scores[0];
const classOf = (scores) => Number(scores[0] > 0 || (ZERO_IS_SECOND && scores[0] === 0));
