"""
What the standard error means
=============================

The loss of a compressed model is measured on a limited number of samples. Here, the same two models are compared on
many sets of held-out samples: the standard error tells how much the losses vary.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import slimsvm

X, y = make_moons(400, noise=0.3, random_state=0)
svc = SVC(C=10).fit(X, y)
small = slimsvm.compress(svc, n_vectors=5, random_state=0)

X_new, y_new = make_moons(200_000, noise=0.3, random_state=1)
lost = (svc.predict(X_new) == y_new) * 100.0 - (small.predict(X_new) == y_new) * 100.0
truth = lost.mean()

# %%
# Each histogram has one loss per set of n samples. Four times as many samples halve the standard error.

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for n in (250, 1000, 4000):
    losses = lost[: 200_000 // n * n].reshape(-1, n).mean(axis=1)
    error = lost[:n].std(ddof=1) / np.sqrt(n)
    ax.hist(losses, bins=25, density=True, alpha=0.5, label=f"{n} samples: standard error {error:.2f} points")
ax.axvline(truth, color="k", label=f"true loss {truth:.2f} points")
ax.set(xlabel="measured loss in points of accuracy", yticks=[])
ax.legend()
