"""
Outliers with few vectors
=========================

A one-class SVM keeps a fixed share of all samples as support vectors, however simple the region. A few vectors describe
the same region.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import OneClassSVM

import slimsvm

rng = np.random.default_rng(0)
X = np.vstack([rng.normal([0, 0], 0.5, (300, 2)), rng.normal([2.5, 1], [0.8, 0.3], (300, 2))])
one_class = OneClassSVM(nu=0.1, gamma=1.0).fit(X)

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
models = [slimsvm.compress(one_class)] + [slimsvm.compress(one_class, n_vectors=m, random_state=0) for m in (12, 6)]
for ax, model in zip(axes, models):
    slimsvm.plots.plot_decision(model, X, ax=ax, grid_resolution=120)
    agree = np.mean(model.predict(X) == one_class.predict(X))
    ax.set_title(f"{model.n_vectors_} vectors, {agree:.1%} the same")
