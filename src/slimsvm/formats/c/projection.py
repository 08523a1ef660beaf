"""New coefficients that compensate for the rounding of points.

If large coefficients cancel, small changes of the points change the scores much. The expansion Σ_j β_j φ(z_j) has a
nearest expansion on the rounded points z′ in feature space:

    β′ = (K_z′z′ + ε I)⁻¹ K_z′z β

A larger ε gives smaller coefficients with smaller rounding errors; the best ε is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy import linalg

from slimsvm._record import FloatArray
from slimsvm.heads import Head, LinearHead, PairsHead, StagedHead
from slimsvm.kernels.geometry import dense
from slimsvm.tables import Form

RIDGES = 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3  # ε, as a share of the mean of k(z, z)
MOST_POINTS = 2000


def projected_heads(form: Form, rounded: FloatArray) -> Iterator[Head]:
    """Heads for the rounded points (m, p), one for each ε.

    There are none if the machine has no single feature space, or too many points.
    """
    kernel, head = form.machine.kernel, form.head
    shared = isinstance(head, (LinearHead, PairsHead, StagedHead))
    if form.presummed or not shared or not kernel.definite or form.gammas is not None or form.n_points > MOST_POINTS:
        return
    own, cross = kernel.gram(rounded, rounded), kernel.gram(rounded, dense(form.points))
    typical = float(np.trace(own)) / len(own)
    if not 0 < typical < np.inf:
        return
    for ridge in RIDGES:
        yield _projected(head, own + ridge * typical * np.eye(len(own)), cross)


def _projected(head: Head, own: FloatArray, cross: FloatArray) -> Head:
    if not isinstance(head, StagedHead):
        return replace(head, coef=linalg.solve(own, cross @ head.coef, assume_a="pos"))  # type: ignore[type-var]
    coef = np.zeros_like(head.coef)
    for t, n in enumerate(head.sizes):
        columns = head.columns(t)
        if n:
            coef[:n, columns] = linalg.solve(own[:n, :n], cross[:n, :n] @ head.coef[:n, columns], assume_a="pos")
    return replace(head, coef=coef)
