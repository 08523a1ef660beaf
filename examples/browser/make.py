"""Train and export the models of the two pages in this folder.

    python examples/browser/make.py            # both
    python examples/browser/make.py plane      # the points in the plane alone: it needs no data

The digits are MNIST, from the data folder that CONTRIBUTING.md describes. Training takes about a minute on two cores.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from sklearn.datasets import make_blobs, make_circles, make_moons
from sklearn.svm import SVC

import slimsvm

HERE = Path(__file__).resolve().parent
COLUMNS = 20  # images in a row of digit-vectors.png
SIZES = (3, 6, 12, 25)


def make_digits() -> None:
    """digit.mjs, and its vectors as images."""
    sys.path.append(str(HERE.parents[1] / "tools"))
    from shared_data import load

    data = load("mnist")
    X, X_test = (data[part].reshape(len(data[part]), -1) / 255 for part in ("X_train", "X_test"))
    model = slimsvm.SparseLargeMarginClassifier(
        n_vectors=380, metric="projection", n_components=30, max_features=500, random_state=0
    ).fit(X, data["y_train"])
    done = slimsvm.export(model, "js", HERE / "digit.mjs", tables="int8", X=X_test, y=data["y_test"])
    print(*done.notes, sep="\n")
    images = images_of(model.machine_, X[:20_000])
    rows = -(-len(images) // COLUMNS)
    sheet = np.zeros((rows * COLUMNS, 28, 28))
    sheet[: len(images)] = images.reshape(-1, 28, 28)
    sheet = sheet.reshape(rows, COLUMNS, 28, 28).transpose(0, 2, 1, 3).reshape(rows * 28, COLUMNS * 28)
    levels = (np.rint(sheet * 15) * 17).astype(np.uint8)  # few grey levels make a small file
    Image.fromarray(levels).save(HERE / "digit-vectors.png", optimize=True)


def images_of(machine: slimsvm.KernelMachine, X: Any) -> Any:
    """The vectors of a projection as images: the linear map that best gives back X from its projection."""
    assert machine.input_map is not None
    projected = np.column_stack([machine.input_map.apply(X), np.ones(len(X))])
    back = np.linalg.lstsq(projected, X, rcond=None)[0]
    return np.clip(np.column_stack([machine.points, np.ones(machine.n_vectors)]) @ back, 0, 1)


def make_plane() -> None:
    """For three sets of points, a trained SVC and smaller models with the same kernel."""
    sets = {
        "moons": make_moons(600, noise=0.25, random_state=0),
        "rings": make_circles(600, noise=0.15, factor=0.45, random_state=0),
        "clouds": make_blobs(600, centers=[(-1, 0), (1, 0.4), (0.2, 1.6)], cluster_std=0.55, random_state=0),
    }
    (HERE / "plane").mkdir(exist_ok=True)
    for name, (X, y) in sets.items():
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        svc = SVC(C=10).fit(X, y)
        slimsvm.export(slimsvm.compress(svc), "js", HERE / "plane" / f"{name}-all.mjs")
        for size in SIZES:
            small = slimsvm.compress(svc, X, y, n_vectors=size, method="sparse_margin", random_state=0)
            slimsvm.export(small, "js", HERE / "plane" / f"{name}-{size}.mjs")
        np.savetxt(HERE / "plane" / f"{name}.csv", np.column_stack([X[::3], y[::3]]), fmt="%.2f", delimiter=",")
    for one in (HERE / "plane").glob("*.d.mts"):
        one.unlink()


if __name__ == "__main__":
    if "plane" not in sys.argv[1:]:
        make_digits()
    make_plane()
