"""What all methods share: points to compare with, training data, progress, and Ctrl-C."""
