// An ensemble: the scores of its models come one model after another, and decisions and probabilities are means.
const perModel = (found) => Array.from({ length: N_MODELS }, (_, i) => found.slice((i * S) / N_MODELS, ((i + 1) * S) / N_MODELS));
const mean = (rows) => rows[0].map((_, c) => rows.reduce((sum, row) => sum + row[c], 0) / rows.length);
function decided(found) {
  const all = mean(perModel(found).map((own) => [single.decided(own)].flat()));
  return all.length === 1 ? all[0] : all;
}
function classOf(found) {
  const all = mean(perModel(found).map((own) => [single.byClass(own)].flat()));
  return all.length === 1 ? Number(all[0] > 0 || (ZERO_IS_SECOND && all[0] === 0)) : largest(all);
}
