"""
Decision boundaries with fewer and fewer vectors
================================================

An SVC of two noisy moons has over a hundred support vectors. Its boundary needs five or six.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import slimsvm

X, y = make_moons(500, noise=0.25, random_state=0)
svc = SVC(C=10).fit(X, y)

# %%
# `compress` without a size keeps all support vectors. With `n_vectors`, it makes new vectors.

models = [slimsvm.compress(svc)]
models += [slimsvm.compress(svc, X, y, n_vectors=m, method="sparse_margin", random_state=0) for m in (12, 6, 3)]

figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained")
for ax, model in zip(axes, models):
    slimsvm.plots.plot_decision(model, X, y, ax=ax, grid_resolution=120)
    ax.set_title(f"{model.n_vectors_} vectors, {model.score(X, y):.1%} right")
