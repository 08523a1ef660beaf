"""
A model for a web page
======================

`export(model, "js", path)` writes one JavaScript module. The picture shows how its size and its accuracy depend on the
type of its tables.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import slimsvm

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
model = slimsvm.SparseLargeMarginClassifier(n_vectors=40, gamma=0.1, C=10, max_iter=60, random_state=0)
model.fit(X_train, y_train)

folder = Path(tempfile.mkdtemp())
figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
for tables in ("float64", "float32", "int16", "int8"):
    done = slimsvm.export(model, "js", folder / f"{tables}.mjs", tables=tables, X=X_test, y=y_test)
    ax.plot(done.facts["n_bytes"] / 1000, done.facts["quality"], "o", label=tables)
    print(tables, *done.notes)
ax.set(xlabel="kB of the whole module", ylabel="accuracy on test digits", ylim=(0.9, 1.0))
ax.legend()
