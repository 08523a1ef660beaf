const decided = (scores) => {
  const values = VALUE_FUNCTION ? scores.map(VALUE_FUNCTION) : scores;
  return IS_FLAT ? values[0] : values;
};
