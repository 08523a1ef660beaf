"""
Growing until the error stops falling
=====================================

`GrowingSVC` adds vectors step by step and stops by itself. `history_` has the error after every step.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

import slimsvm

X, y = make_moons(2000, noise=0.3, random_state=0)
model = slimsvm.GrowingSVC(C=10, gamma=1.0, random_state=0).fit(X[:800], y[:800])
print(f"{model.n_vectors_} vectors, {model.score(X[800:], y[800:]):.1%} right on new samples")

# %%
# The model of every step can be had from `machines_`.

sizes = [step["n_vectors"] for step in model.history_]
errors = [(machine.predict(X[800:]) != y[800:]).mean() for machine in model.machines_]
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
ax.plot(sizes, errors, "o-")
ax.axvline(model.n_vectors_, color="0.5", linestyle=":", label="the model that was kept")
ax.set(xlabel="vectors", ylabel="error on new samples")
ax.legend()
