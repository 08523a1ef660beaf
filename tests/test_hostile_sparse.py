"""Sparse matrices that were tampered with: every way in refuses them before SciPy's compiled loops read them.

Without the check most of these end the interpreter, so each runs in a child process: one bad matrix after another, and
the child says what became of each.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC

from oracles.scripts import run_script
from slimsvm.answers import Value
from slimsvm.heads import LinearHead
from slimsvm.importers import import_model
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine
from slimsvm.sparse_parts import check_sparse

FORMATS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")
FAR = 10**9

SCRIPT = """
import json, sys, warnings
import numpy as np
from scipy import sparse
import slimsvm
from slimsvm import evaluation
from slimsvm.answers import Value
from slimsvm.compression.problem import transformed
from slimsvm.estimator import wrap
from slimsvm.heads import LinearHead
from slimsvm.kernels import Rbf
from slimsvm.machine import KernelMachine

sys.path.insert(0, sys.argv[1])
from test_hostile_sparse import tampered

warnings.simplefilter("ignore")
evaluation.CHUNK_VALUES = 64  # several blocks, which slice the matrix
machine = KernelMachine(Rbf(0.3), np.ones((3, 4)), LinearHead(np.ones((3, 1)), [0.1]), Value())
y = np.arange(400) % 2
WAYS = {
    "scores": machine.scores,
    "decision": machine.decision,
    "predict": machine.predict,
    "kernel_evaluations": machine.kernel_evaluations,
    "estimator": wrap(machine).predict,
    "fit": lambda X: slimsvm.SparseLargeMarginClassifier(n_vectors=2).fit(X, y),
    "fit_svm": lambda X: slimsvm.ReducedSetClassifier(n_vectors=2).fit(X, y),
    "compress": lambda X: slimsvm.compress(machine, X, y * 1.0, n_vectors=2),
    "points": lambda X: KernelMachine(Rbf(0.3), X, LinearHead(np.ones((400, 1)), [0.1]), Value()),
}
for what, X in tampered():
    for way, call in WAYS.items():
        try:
            call(X)
            result = "accepted"
        except ValueError as error:
            result = "refused" if "damaged" in str(error) else str(error)
        except Exception as error:
            result = repr(error)
        print(json.dumps([what, way, result]), flush=True)
"""


def honest(format: str) -> Any:
    if format == "dia":
        return sparse.dia_array((np.ones((2, 4)), [0, -1]), shape=(400, 4))
    X = np.random.default_rng(0).normal(size=(400, 4))
    return sparse.csr_array(np.where(X > 0, X, 0.0)).asformat(format)


def tampered() -> list[tuple[str, Any]]:
    """Matrices whose arrays do not fit together, each with its name."""
    found = []

    def change(format: str, name: str, spoil: Any) -> None:
        X = honest(format)
        setattr(X, name, spoil(getattr(X, name)))
        found.append((f"{format} {name}", X))

    def far(values: Any) -> Any:
        values = values.copy()
        values[len(values) // 2] = FAR
        return values

    for format in ("csr", "csc", "bsr"):
        change(format, "indices", far)
        change(format, "indices", lambda values: np.where(np.arange(len(values)) == 7, -FAR, values).astype(np.int32))
        change(format, "indptr", far)
        change(format, "indptr", lambda values: np.append(values[:-1], FAR).astype(np.int32))
        change(format, "indptr", lambda values: values[:3])
        change(format, "data", lambda values: values[:3])
    change("csr", "indices", lambda values: values.astype(np.float64))
    change("coo", "data", lambda values: values[:3])
    change("coo", "coords", lambda coords: (far(coords[0]), coords[1]))
    change("coo", "coords", lambda coords: (coords[0], far(coords[1])))
    change("dia", "offsets", lambda values: np.append(values, values))
    change("lil", "data", lambda lists: lists[:3])
    return found


def test_every_way_in_refuses_a_tampered_matrix(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    ended = run_script(script, [str(Path(__file__).parent)], {})
    results = [json.loads(line) for line in ended.stdout.splitlines()]
    assert ended.returncode == 0, f"it ended at {results[-1:]} with {ended.stderr[-2000:]}"
    assert len(results) == 9 * len(tampered())
    assert [result for result in results if result[2] != "refused"] == []


@pytest.mark.parametrize("format", FORMATS)
def test_an_honest_matrix_gives_the_answers_of_a_dense_one(format: str) -> None:
    machine = KernelMachine(Rbf(0.3), np.ones((3, 4)), LinearHead(np.ones((3, 1)), [0.1]), Value())
    X = honest(format)
    check_sparse(X)
    np.testing.assert_allclose(machine.predict(X), machine.predict(X.toarray()), rtol=1e-12)


def test_a_tampered_model_is_refused() -> None:
    X = honest("csr")
    model = SVC(kernel="linear").fit(X, np.arange(400) % 2)
    vectors = model.support_vectors_.tocsc()
    vectors.indices[3] = FAR
    model.support_vectors_ = vectors
    with pytest.raises(ValueError, match=r"support_vectors_ of SVC cannot be read: .*damaged CSC"):
        import_model(model)


def test_the_sentence_names_what_is_wrong() -> None:
    X = honest("csc")
    X.indices[0] = 400
    with pytest.raises(ValueError, match=r"^X is a damaged CSC matrix: indices must be from 0 to 399\.$"):
        check_sparse(X)
    with pytest.raises(ValueError, match=r"^X must have rows and columns\. Got a sparse array of shape \(3,\)\.$"):
        check_sparse(sparse.coo_array(np.ones(3)))
