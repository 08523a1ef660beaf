"""Make the header of the sketch beside this file: two classes in the plane, three vectors, 22 bytes of tables.

The data are drawn as Ripley (1994) describes his: each class is a mixture of two normal distributions.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import slimsvm

CENTRES = ((-0.7, 0.3), (0.3, 0.3)), ((-0.3, 0.7), (0.4, 0.7))  # of the first class, and of the second
VARIANCE = 0.03


def draw(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """n samples of each class."""
    parts = [np.array(centres)[rng.integers(2, size=n)] for centres in CENTRES]
    return np.vstack(parts) + rng.normal(scale=VARIANCE**0.5, size=(2 * n, 2)), np.repeat(["below", "above"], n)


def main() -> None:
    """Train, export, and say what came out."""
    rng = np.random.default_rng(0)
    X, y = draw(125, rng)
    X_test, y_test = draw(500, rng)
    model = slimsvm.SparseLargeMarginClassifier(3, C=10, gamma=1.0, loss="hinge", n_init=5, random_state=0).fit(X, y)
    header = Path(__file__).parent / "ripley" / "model.h"
    done = slimsvm.export(model, "c", header, tables="int16", X=X_test, y=y_test)
    print(*done.notes, sep="\n")


if __name__ == "__main__":
    main()
