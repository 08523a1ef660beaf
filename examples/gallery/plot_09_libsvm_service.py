"""
A LIBSVM model, smaller and faster
==================================

slimsvm reads and writes LIBSVM's model files, so a service that runs `svm-predict` or a LIBSVM binding can use a
smaller model without other changes.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.svm import SVC

import slimsvm

X, y = make_classification(2000, n_features=10, n_informative=6, class_sep=0.8, random_state=0)
folder = Path(tempfile.mkdtemp())
svc = SVC(C=2).fit(X[:1000], y[:1000])
slimsvm.export(slimsvm.compress(svc), "libsvm", folder / "libsvm.model")  # as svm-train would write it

# %%
# `read_libsvm` needs no data; a size needs none either.

served = slimsvm.read_libsvm(folder / "libsvm.model")
sizes = [served.n_vectors_, 100, 50, 25]
accuracy = [served.score(X[1000:], y[1000:])]
bytes_ = [(folder / "libsvm.model").stat().st_size]
for m in sizes[1:]:
    small = slimsvm.compress(folder / "libsvm.model", n_vectors=m, random_state=0)
    slimsvm.export(small, "libsvm", folder / f"{m}.model")
    accuracy.append(small.score(X[1000:], y[1000:]))
    bytes_.append((folder / f"{m}.model").stat().st_size)
    print(f"{m:4} vectors: {accuracy[-1]:.1%} right, {bytes_[-1] / 1000:.0f} kB")

figure, ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
ax.semilogx(bytes_, accuracy, "o-")
for size, x, value in zip(sizes, bytes_, accuracy):
    ax.annotate(f"{size}", (x, value), textcoords="offset points", xytext=(4, 6))
ax.set(xlabel="bytes of the model file", ylabel="accuracy on new samples", title="number of vectors beside each point")
