"""Oracles: the mathematics as double loops over Python floats, sharing no code with the package."""
