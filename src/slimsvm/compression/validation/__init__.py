"""Held-out samples: folds, scores, and what a smaller machine loses on them."""
