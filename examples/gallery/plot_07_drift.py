"""
Data that change: partial_fit
=============================

`partial_fit` learns from one block of samples after another and follows changes. Here the classes rotate slowly. A
model that stops learning falls behind.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

import slimsvm


def block(angle, seed):
    """Two moons, turned by an angle."""
    X, y = make_moons(200, noise=0.2, random_state=seed)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return (X - [0.5, 0.25]) @ turn, y


follows = slimsvm.SparseLargeMarginClassifier(n_vectors=12, gamma=1.0, random_state=0)
stopped = slimsvm.SparseLargeMarginClassifier(n_vectors=12, gamma=1.0, random_state=0)
scores = []
for step in range(60):
    X, y = block(angle=0.03 * step, seed=step)
    if step:
        scores.append((follows.score(X, y), stopped.score(X, y)))
    follows.partial_fit(X, y, classes=[0, 1])
    if step < 10:
        stopped.partial_fit(X, y, classes=[0, 1])

# %%
# Each block is predicted before it is learned from.

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
ax.plot(scores, label=["keeps learning", "stops after ten blocks"])
ax.set(xlabel="block of 200 samples", ylabel="accuracy on the next block")
ax.legend()
