const decided = (scores) => scores[0];
