"""
Early exit: easy samples need few vectors
=========================================

`add_early_exit` sorts the vectors and sets thresholds, so that a sample is decided as soon as its score is far enough
from the boundary. No training sample that the full model gets right is lost.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import slimsvm

X, y = make_moons(3000, noise=0.15, random_state=0)
svc = SVC(C=10).fit(X[:1500], y[:1500])
small = slimsvm.compress(svc, n_vectors=30, random_state=0)
fast = slimsvm.add_early_exit(small, X[:1500], y[:1500])

counts = fast.kernel_evaluations(X[1500:])
print(f"{counts.mean():.1f} of {small.n_vectors_} vectors on average")
print(f"accuracy {small.score(X[1500:], y[1500:]):.2%}, with early exit {fast.score(X[1500:], y[1500:]):.2%}")

# %%
# Samples near the boundary, and only these, need many vectors.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
left.hist(counts, bins=range(32), color="C0")
left.set(xlabel="vectors used", ylabel="test samples")
drawn = right.scatter(*X[1500:].T, c=counts, s=8, cmap="viridis")
figure.colorbar(drawn, label="vectors used")
