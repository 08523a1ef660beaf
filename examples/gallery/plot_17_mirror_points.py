"""
Mirror points: deciding by distances
====================================

`MirrorPointClassifier` decides by comparing distances in feature space to pairs of points (Chen and Chen 2002). Its
vectors are samples.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

import slimsvm

X, y = make_moons(400, noise=0.2, random_state=0)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
for ax, n_pairs in zip(axes, (1, 3, 6)):
    model = slimsvm.MirrorPointClassifier(n_pairs=n_pairs, C=10, random_state=0).fit(X, y)
    slimsvm.plots.plot_decision(model, X, y, ax=ax, grid_resolution=100)
    ax.set_title(f"{n_pairs} pairs, {model.n_vectors_} vectors, {model.score(X, y):.1%} right")
