"""
A model for a microcontroller
=============================

The C export writes one header with tables of floats or integers, and tells what narrow tables lose, without a compiler.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import slimsvm

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, random_state=0)
model = slimsvm.SparseLargeMarginClassifier(n_vectors=24, metric="projection", n_components=8, random_state=0)
model.fit(X_train, y_train)

found = {}
for tables in ("float32", "int16", "int8", "int8_all"):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "digits.h"
        found[tables] = slimsvm.export(model, "c", path, tables=tables, X=X_test, y=y_test).facts
    print(f"{tables:9} {found[tables]['n_bytes']:6} bytes, {found[tables]['quality']:.2%} right")

# %%
# Eight bits per number are enough here, for a quarter of the memory.

figure, ax = plt.subplots(figsize=(6, 3.4), layout="constrained")
bars = ax.bar(list(found), [facts["n_bytes"] for facts in found.values()])
ax.bar_label(bars, [f"{facts['quality']:.1%} right" for facts in found.values()])
ax.set_ylabel("bytes of tables")
