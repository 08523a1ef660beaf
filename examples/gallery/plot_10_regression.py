"""
Regression with few vectors
===========================

`compress` takes `SVR` and `KernelRidge` too. The curve of 60 support vectors needs eight.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVR

import slimsvm

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 200))[:, None]
y = np.sin(x[:, 0]) * np.exp(-0.1 * x[:, 0]) + 0.1 * rng.normal(size=200)
svr = SVR(C=10, gamma=0.5, epsilon=0.05).fit(x, y)

figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.plot(x, y, ".", color="0.7")
ax.plot(x, svr.predict(x), color="k", linewidth=3, alpha=0.3, label=f"SVR, {len(svr.support_)} support vectors")
for m in (3, 5, 8):
    small = slimsvm.compress(svr, n_vectors=m, random_state=0)
    ax.plot(x, small.predict(x), label=f"{m} vectors, R² with the SVR {small.score(x, svr.predict(x)):.3f}")
ax.legend()
