"""Sparse machines trained for the largest margin (Wu, Schölkopf & Bakır 2005), and coefficients for given vectors."""
