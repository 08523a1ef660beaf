"""Machines as fitted scikit-learn SVC, SVR or OneClassSVM objects, for tools that need these.

The object is fitted on one row per class, so that it has all the attributes of the installed scikit-learn version. Then
the attributes that hold the machine are set. For two classes, scikit-learn predicts with LIBSVM's signs in
`_dual_coef_` and `_intercept_`, and shows the opposite signs in `dual_coef_` and `intercept_`.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse as sp
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.pipeline import Pipeline
from sklearn.svm._classes import (
    SVC,
    SVR,
    OneClassSVM,
)  # scikit-learn's own classes, also if scikit-learn-intelex has patched them

from slimsvm._record import FloatArray, is_sparse
from slimsvm._unwrap import compressed_model
from slimsvm.answers import Classes, Inlier
from slimsvm.calibration import PairwiseSigmoid
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats import machine_of
from slimsvm.formats.pairwise import Notes, as_libsvm
from slimsvm.formats.sklearn_transformers import map_steps, preparation_steps
from slimsvm.heads import PairsHead, PairwiseHead
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine


def to_sklearn(model: Any, *, sparse: bool | None = None) -> Any:
    """A fitted SVC, SVR or OneClassSVM with the vectors of a machine; a Pipeline if the machine has an input map.

    A preparation becomes a ColumnTransformer of encoders, imputers and other transformers. A scaler becomes part of the
    vectors if that is exact (linear kernel, or rbf with the same scale for all features), else a StandardScaler before
    the SVM. A projection becomes a TruncatedSVD. A UserWarning names every difference from the machine.

    Parameters
    ----------
    model : fitted slimsvm estimator, Pipeline that ends in one, or KernelMachine
        The last step of a Pipeline is replaced.
    sparse : bool, default=None
        Whether the SVM stores sparse vectors. scikit-learn's SVMs accept sparse data only then. By default they are
        sparse if the machine's vectors are.

    Returns
    -------
    SVC, SVR, OneClassSVM or Pipeline
        It can be pickled and cloned as usual; a clone is not fitted.

    Raises
    ------
    UnsupportedExportError
        If scikit-learn cannot represent the machine, for instance a mirror head.
    """
    model = compressed_model(model)
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        return Pipeline([*model.steps[:-1], (name, to_sklearn(last, sparse=sparse))])
    notes = Notes()
    whole = machine_of(model)
    machine = as_libsvm(_sorted(whole.without_preparation(), notes), "scikit-learn's SVC", notes)
    for change in notes.changes:
        warnings.warn(change, UserWarning, stacklevel=2)
    given = machine.input_map
    steps: list[tuple[str, Any]] = [] if whole.preparation is None else preparation_steps(whole.preparation)
    steps += [] if given is None else map_steps(given)
    steps.append(("svm", _estimator(machine, sparse)))
    if machine.feature_names is not None:
        steps[0][1].feature_names_in_ = np.array(machine.feature_names, dtype=object)
    return Pipeline(steps) if len(steps) > 1 else steps[0][1]


def _sorted(machine: KernelMachine, notes: Notes) -> KernelMachine:
    """The machine with its pairs in the order of the sorted classes, as in scikit-learn."""
    answer, head = machine.answer, machine.head
    if not isinstance(answer, Classes) or answer.order == tuple(range(answer.n_classes)):
        return machine
    in_order = replace(answer, order=tuple(range(answer.n_classes)))
    if not isinstance(head, PairsHead | PairwiseHead):
        return replace(machine, answer=in_order)
    if answer.n_classes > 2 and not answer.break_ties:
        notes.changes.append(
            f"Ties of votes go to the first of the sorted classes, as in scikit-learn. In the machine they go to the "
            f"first of {answer.labels[list(answer.order)].tolist()}."
        )
    shared = head.pairs() if isinstance(head, PairwiseHead) else head
    turned = PairsHead(answer.sorted_pairs(shared.coef), answer.sorted_pairs(shared.intercept[None])[0])
    calibration = machine.calibration
    if isinstance(calibration, PairwiseSigmoid):  # P(j | i or j) = 1/(1 + exp(a (−f) − b))
        signs = answer.sorted_pairs(np.ones((1, head.n_scores)))[0]
        a, b = (answer.sorted_pairs(v[None])[0] for v in (calibration.a, calibration.b))
        calibration = replace(calibration, a=a * signs, b=b)
    return replace(machine, head=turned, answer=in_order, calibration=calibration)


def _estimator(machine: KernelMachine, sparse: bool | None) -> Any:
    """The SVC, SVR or OneClassSVM of a machine in LIBSVM's form."""
    head, answer = machine.head, machine.answer
    if isinstance(answer, Classes):
        made = SVC(**_kernel(machine), decision_function_shape=answer.shape, break_ties=answer.break_ties)
        blocks, n_rows = list(head.blocks), answer.n_classes
    elif head.n_scores > 1:
        raise UnsupportedExportError(
            f"scikit-learn's SVR predicts one value, and this machine predicts {head.n_scores}. Export it to a format "
            f"that supports several values, such as 'c' or 'onnx'."
        )
    else:
        made = (OneClassSVM if isinstance(answer, Inlier) else SVR)(**_kernel(machine))
        blocks, n_rows = [machine.n_vectors] * 2, 1  # as in scikit-learn
    wanted = is_sparse(machine.points) if sparse is None else bool(sparse)
    start = sp.csr_array((n_rows, machine.points.shape[1])) if wanted else np.zeros((n_rows, machine.points.shape[1]))
    made.fit(start, np.arange(n_rows))
    made._n_support = np.array(blocks, dtype=np.int32)
    _set_vectors(made, machine.points)
    _set_coefficients(made, head.coef.T, head.intercept, isinstance(answer, Classes) and answer.n_classes == 2)
    if isinstance(answer, Classes):
        made.classes_ = answer.labels.copy()
        made.n_iter_ = made._num_iter = np.zeros(head.n_scores, dtype=np.int32)
    else:
        made.n_iter_ = 0
    if isinstance(answer, Inlier):
        made.offset_ = -made.intercept_
    if isinstance(machine.calibration, PairwiseSigmoid):
        _set_probabilities(made, machine.calibration)
    return made


def _kernel(machine: KernelMachine) -> dict[str, Any]:
    """The kernel parameters of the SVM. scikit-learn's SVC has no laplacian kernel, but accepts a function."""
    kernel = machine.kernel
    if kernel.name == "laplacian":
        return {"kernel": partial(laplacian_kernel, gamma=kernel.gamma)}
    return {"kernel": kernel.name, "gamma": kernel.gamma, "coef0": kernel.coef0, "degree": int(kernel.degree)}


def _set_vectors(made: Any, points: Any) -> None:
    m = points.shape[0]
    made.support_ = np.arange(m, dtype=np.int32)
    made.shape_fit_ = points.shape
    made.n_features_in_ = points.shape[1]
    if callable(made.kernel):  # scikit-learn calls the function with all training samples
        made._BaseLibSVM__Xfit = _csr(points, sp.csr_array) if is_sparse(points) else np.array(points)
        made.support_vectors_ = np.empty((0, 0))
    elif made._sparse:
        made.support_vectors_ = _csr(points, type(made.support_vectors_))
    else:
        made.support_vectors_ = np.array(dense(points), order="C")


def _csr(points: Any, kind: Any) -> Any:
    """A CSR copy with the 32-bit indices that scikit-learn needs."""
    rows = sp.csr_array(points)
    parts = rows.data.copy(), rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return kind(parts, shape=rows.shape)


def _set_coefficients(made: Any, coef: FloatArray, intercept: FloatArray, two_classes: bool) -> None:
    """Set coefficients (q, m) and intercepts, given with LIBSVM's signs, in the private and public attributes."""
    sign = -1.0 if two_classes else 1.0
    made._intercept_, made.intercept_ = intercept.copy(), sign * intercept
    made._dual_coef_, made.dual_coef_ = (
        _every_entry(part, type(made.dual_coef_)) if made._sparse else np.array(part, order="C")
        for part in (coef, sign * coef)
    )


def _every_entry(values: FloatArray, kind: Any) -> Any:
    """A CSR matrix that also stores zeros, because scikit-learn passes its data to C as a dense array."""
    q, m = values.shape
    return kind((values.ravel(), np.tile(np.arange(m), q), np.arange(0, q * m + 1, m) if m else [0] * (q + 1)), (q, m))


def _set_probabilities(made: Any, calibration: PairwiseSigmoid) -> None:
    if "probability" not in made.get_params():
        warnings.warn(
            "Probabilities are left out: the SVC of this scikit-learn version has none.", UserWarning, stacklevel=4
        )
        return
    made.probability = True
    made._effective_probability = True
    made._probA, made._probB = calibration.a.copy(), calibration.b.copy()
