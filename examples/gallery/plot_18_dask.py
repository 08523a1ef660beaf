"""
Training on a Dask cluster
==========================

`slimsvm.dask` trains on rows that lie on the workers of a cluster, and gives the model that one process would give.
Here the cluster is two threads of this computer.
"""

import dask.array as da
import matplotlib.pyplot as plt
from dask.distributed import Client

from slimsvm.dask import DaskSparseLargeMarginClassifier

rng = da.random.default_rng(0)
X = rng.normal(size=(8000, 2), chunks=(2000, 2))
y = (X[:, 0] * X[:, 1] > 0).astype(int)

with Client(processes=False, n_workers=1, threads_per_worker=2, dashboard_address=":0"):
    model = DaskSparseLargeMarginClassifier(12, init="kmeans", max_iter=20, random_state=0).fit(X, y)
    labels, rows = model.predict(X[:2000]).compute(), X[:2000].compute()

# %%
# `to_local` gives the estimator without Dask, to save or export.

print(f"{(labels == y[:2000].compute()).mean():.1%} right with {model.to_local().n_vectors_} vectors")
figure, ax = plt.subplots(figsize=(4.4, 4.2), layout="constrained")
ax.scatter(*rows.T, c=labels, s=4, cmap="coolwarm")
ax.plot(*model.to_local().vectors_.T, "kx", label="vectors")
ax.legend()
