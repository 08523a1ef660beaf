"""Decisions by distances from pairs of mirror points (Chen & Chen 2002)."""
