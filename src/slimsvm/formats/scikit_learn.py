"""A fitted scikit-learn SVC, SVR or OneClassSVM that holds a machine's vectors, for whatever takes one.

Each is fitted on a row per class, which gives it all the attributes of the scikit-learn that is installed; then those
that hold the machine are set. Two classes: scikit-learn predicts with LIBSVM's signs, in `_dual_coef_` and
`_intercept_`, and shows them turned in `dual_coef_` and `intercept_`.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm._classes import (
    SVC,
    SVR,
    OneClassSVM,
)  # scikit-learn's own, also where scikit-learn-intelex is patched in

from slimsvm._record import FloatArray, is_sparse
from slimsvm.answers import Classes, Inlier
from slimsvm.calibration import PairwiseSigmoid
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats import machine_of
from slimsvm.formats.pairwise import Notes, as_libsvm
from slimsvm.heads import PairsHead, PairwiseHead
from slimsvm.input_map import InputMap
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine


def to_sklearn(model: Any, *, sparse: bool | None = None) -> Any:
    """A fitted SVC, SVR or OneClassSVM with the vectors of a machine; in a Pipeline where there is an input map.

    A scaler becomes part of the vectors where that is exact (linear kernel; rbf where all features are scaled alike),
    else a StandardScaler in front; a projection becomes a TruncatedSVD. What scikit-learn's object does differently
    from the machine is told in a UserWarning.

    Parameters
    ----------
    model : fitted slimsvm estimator, Pipeline that ends in one, or KernelMachine
        Of a Pipeline the last step is replaced.
    sparse : bool, default=None
        Whether the object holds sparse vectors, and so takes sparse data; scikit-learn's takes them only then. By
        default it does where the machine's own vectors are sparse.

    Returns
    -------
    SVC, SVR, OneClassSVM or Pipeline
        Pickles and clones like any other; a clone is not fitted.

    Raises
    ------
    UnsupportedExportError
        For what none of them can do, such as a mirror head, with what to do.
    """
    if isinstance(model, Pipeline):
        name, last = model.steps[-1]
        return Pipeline([*model.steps[:-1], (name, to_sklearn(last, sparse=sparse))])
    notes = Notes()
    machine = as_libsvm(_sorted(machine_of(model), notes), "scikit-learn's SVC", notes)
    for change in notes.changes:
        warnings.warn(change, UserWarning, stacklevel=2)
    given = machine.input_map
    steps: list[tuple[str, Any]] = [] if given is None else _transformers(given)
    steps.append(("svm", _estimator(machine, sparse)))
    if machine.feature_names is not None:
        steps[0][1].feature_names_in_ = np.array(machine.feature_names, dtype=object)
    return Pipeline(steps) if len(steps) > 1 else steps[0][1]


def _sorted(machine: KernelMachine, notes: Notes) -> KernelMachine:
    """The machine with its pairs in the order of the sorted classes, which is that of scikit-learn."""
    answer, head = machine.answer, machine.head
    if not isinstance(answer, Classes) or answer.order == tuple(range(answer.n_classes)):
        return machine
    in_order = replace(answer, order=tuple(range(answer.n_classes)))
    if not isinstance(head, PairsHead | PairwiseHead):
        return replace(machine, answer=in_order)
    if answer.n_classes > 2 and not answer.break_ties:
        notes.changes.append(
            f"Votes that tie go to the first of the sorted classes, as in scikit-learn; the machine has them go to the "
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
            f"scikit-learn's SVR has one value, and this machine has {head.n_scores}. Export machines of one value "
            f"each, or to a format that has several, such as 'c' or 'onnx'."
        )
    else:
        made = (OneClassSVM if isinstance(answer, Inlier) else SVR)(**_kernel(machine))
        blocks, n_rows = [machine.n_vectors] * 2, 1  # as scikit-learn has it
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
    """The kernel as parameters; scikit-learn's SVC has no laplacian kernel of its own, but takes a function."""
    kernel = machine.kernel
    if kernel.name == "laplacian":
        return {"kernel": partial(laplacian_kernel, gamma=kernel.gamma)}
    return {"kernel": kernel.name, "gamma": kernel.gamma, "coef0": kernel.coef0, "degree": int(kernel.degree)}


def _set_vectors(made: Any, points: Any) -> None:
    m = points.shape[0]
    made.support_ = np.arange(m, dtype=np.int32)
    made.shape_fit_ = points.shape
    made.n_features_in_ = points.shape[1]
    if callable(made.kernel):  # it asks the function for the kernel values of all that it was fitted on
        made._BaseLibSVM__Xfit = _csr(points, sp.csr_array) if is_sparse(points) else np.array(points)
        made.support_vectors_ = np.empty((0, 0))
    elif made._sparse:
        made.support_vectors_ = _csr(points, type(made.support_vectors_))
    else:
        made.support_vectors_ = np.array(dense(points), order="C")


def _csr(points: Any, kind: Any) -> Any:
    """A CSR copy with the indices of 32 bits that scikit-learn's loops want."""
    rows = sp.csr_array(points)
    parts = rows.data.copy(), rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return kind(parts, shape=rows.shape)


def _set_coefficients(made: Any, coef: FloatArray, intercept: FloatArray, two_classes: bool) -> None:
    """Coefficients (q, m) and intercepts, in LIBSVM's signs, as scikit-learn keeps and shows them."""
    sign = -1.0 if two_classes else 1.0
    made._intercept_, made.intercept_ = intercept.copy(), sign * intercept
    made._dual_coef_, made.dual_coef_ = (
        _every_entry(part, type(made.dual_coef_)) if made._sparse else np.array(part, order="C")
        for part in (coef, sign * coef)
    )


def _every_entry(values: FloatArray, kind: Any) -> Any:
    """A CSR matrix that stores its zeros too: scikit-learn hands its data to C as if they were dense."""
    q, m = values.shape
    return kind((values.ravel(), np.tile(np.arange(m), q), np.arange(0, q * m + 1, m) if m else [0] * (q + 1)), (q, m))


def _set_probabilities(made: Any, calibration: PairwiseSigmoid) -> None:
    if "probability" not in made.get_params():
        warnings.warn("Probabilities are left out: the SVC of this scikit-learn has none.", UserWarning, stacklevel=4)
        return
    made.probability = True
    made._effective_probability = True
    made._probA, made._probB = calibration.a.copy(), calibration.b.copy()


def _transformers(given: InputMap) -> list[tuple[str, Any]]:
    """Fitted steps that do what the input map does."""
    if given.is_diagonal and (given.scale != 0).all():
        return [("scale", _standard(given.shift - given.offset / given.scale, 1.0 / given.scale))]
    if given.is_diagonal:
        return [("scale", _min_max(given))]
    project = TruncatedSVD(n_components=len(given.scale))
    project.components_, project.n_features_in_ = given.scale.copy(), given.n_features_in
    before = [("centre", _standard(given.shift, None))] if given.shift.any() else []
    after = [("shift", _standard(-given.offset, None))] if given.offset.any() else []
    return [*before, ("project", project), *after]


def _standard(mean: FloatArray, scale: FloatArray | None) -> StandardScaler:
    made = StandardScaler(with_mean=bool(mean.any()), with_std=scale is not None).fit(np.zeros((1, len(mean))))
    if made.with_mean:
        made.mean_ = mean.copy()
    if scale is not None:
        made.scale_, made.var_ = scale.copy(), scale**2
    return made


def _min_max(given: InputMap) -> MinMaxScaler:
    """x s + (c − s a): also where s is zero, which a StandardScaler cannot divide by."""
    made = MinMaxScaler().fit(np.zeros((1, given.n_features_in)))
    made.scale_, made.min_ = given.scale.copy(), given.offset - given.scale * given.shift
    width = np.divide(1.0, given.scale, out=np.zeros_like(given.scale), where=given.scale != 0)
    made.data_min_, made.data_range_ = -made.min_ * width, width
    made.data_max_ = made.data_min_ + width
    return made
