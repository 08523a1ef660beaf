"""Mirror points: a training point and its mirror image behind the hyperplane of a machine are a classifier.

For a hyperplane g(x) = ⟨w, φ(x)⟩ + b in feature space the mirror vector of a point v is (Chen & Chen 2002, eq. 6)

    m_v = φ(v) − 2 (g(v)/‖w‖²) w,   d²(x, m_v) − d²(x, φ(v)) = 4 g(v) g(x)/‖w‖²

so the nearer of the two tells the side of x: one pair decides as the machine does (property 1). In general m_v has no
pre-image, and β φ(u) replaces it. For a given u the best scale and the remaining distance are (eq. 12)

    β = R₂/R₁,   d² = R₃ − R₂²/R₁
    R₁ = k(u, u),   R₂ = k(v, u) − 2 (g(v)/‖w‖²)(g(u) − b),   R₃ = k(v, v) + 4 g(v) b/‖w‖²

Symbols: n data X (n, p); K pairs of V (K, p) and U (K, p) with scales β (K,) and sides f(v) = ±1 (K,).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.answers import Value
from slimsvm.arrays import distinct_rows, stack_points
from slimsvm.exceptions import UnsupportedModelError
from slimsvm.heads import LinearHead, MirrorHead
from slimsvm.kernels import Kernel
from slimsvm.kernels.geometry import dense
from slimsvm.machine import KernelMachine
from slimsvm.methods.common.points import BLOCK_VALUES
from slimsvm.methods.common.progress import Progress
from slimsvm.methods.reduced_set.expansion import CALL_WORK, Expansion
from slimsvm.methods.reduced_set.incremental import TOLERANCE, Residual, first_step
from slimsvm.optim import irprop, lbfgs

Preimage = Literal["any", "other", "opposite", "free"]
Search = Literal["irprop", "lbfgs", "fixed_point"]
PREIMAGES = get_args(Preimage)
HALVINGS = 20  # of a step that would cross the hyperplane
TABLE_PAIRS = 64  # pairs that are evaluated together, as the outputs of one machine


@dataclass(frozen=True)
class Pairs:
    """K approximate mirror pairs: V, U, the scales of U, and the sides of V."""

    V: Any
    U: Any
    scale: FloatArray
    side: FloatArray

    def __len__(self) -> int:
        return len(self.side)

    def take(self, rows: Any) -> Pairs:
        """Some of them."""
        return Pairs(self.V[rows], self.U[rows], self.scale[rows], self.side[rows])


class Hyperplanes:
    """The outputs of a machine with a linear head as hyperplanes: g, b, and ‖w‖² of each."""

    def __init__(self, machine: KernelMachine) -> None:
        if not isinstance(machine.head, LinearHead) or machine.gammas is not None:
            raise UnsupportedModelError(
                "Mirror points need a machine with one hyperplane per output in one feature space: a linear head and "
                "one width. For several classes train one-vs-rest, as OneVsRestClassifier(SVC()) or "
                "MirrorPointClassifier do; an SVC by itself is one-vs-one."
            )
        machine.kernel.require_definite("A mirror machine")
        self.machine = replace(machine, input_map=None, calibration=None, feature_names=None, answer=Value(flat=False))
        self.kernel, self.coef, self.b = machine.kernel, machine.head.coef, machine.head.intercept
        self.squares = np.sum(self.coef * (self.scores(machine.points) - self.b), axis=0)
        if not (self.squares > 0).all():
            raise UnsupportedModelError("The machine gives one answer everywhere: it has no hyperplane to mirror at.")

    def scores(self, X: Any) -> FloatArray:
        """g of every output, (n, q), in calls so short that Ctrl-C is obeyed between them."""
        rows = max(1, CALL_WORK // max(1, self.machine.n_vectors * X.shape[1]))
        return np.concatenate([self.machine.scores(X[a : a + rows], n_jobs=-1) for a in range(0, X.shape[0], rows)])


class Mirror:
    """One hyperplane and data X, of which it makes pairs. `g` (n,) are the hyperplane's values at X."""

    def __init__(self, planes: Hyperplanes, output: int, X: Any, g: FloatArray) -> None:
        self.planes, self.output, self.X, self.g = planes, output, X, g
        self.kernel, self.b, self.square = planes.kernel, planes.b[output], float(planes.squares[output])
        self._own = np.asarray(self.kernel.diagonal(X), dtype=np.float64)
        self._row = distinct_rows(X)[1]

    @property
    def sides(self) -> FloatArray:
        """f(x) = ±1 of the data; a point on the hyperplane is on the positive side."""
        return np.where(self.g >= 0, 1.0, -1.0)

    def overlaps(self, rows: NDArray[np.intp]) -> FloatArray:
        """R₂ of the points v in these rows with all data, (rows, n)."""
        K = np.asarray(self.kernel.gram(self.X[rows], self.X), dtype=np.float64)
        K -= np.outer(2.0 / self.square * self.g[rows], self.g - self.b)
        return K

    def pairs(self, rows: NDArray[np.intp], preimage: Preimage) -> Pairs:
        """The pairs of the points in these rows with the best scaled training point (eqs. 10 to 12).

        The training point is the best of all for "any", as printed in the paper, which is usually v itself; of those
        that differ from v for "other"; and of those on the other side of the hyperplane for "opposite", and for "free",
        which starts there.
        """
        best, scale = np.empty(len(rows), dtype=np.intp), np.empty(len(rows))
        step = max(1, BLOCK_VALUES // len(self.g))
        for a in range(0, len(rows), step):
            some = rows[a : a + step]
            R2 = self.overlaps(some)
            with np.errstate(divide="ignore", invalid="ignore"):
                gain = np.where(self._own > 0, R2**2 / self._own, -1.0)
            gain[self._excluded(some, preimage)] = -2.0
            best[a : a + step] = gain.argmax(axis=1)
            scale[a : a + step] = R2[np.arange(len(some)), best[a : a + step]]
        scale /= np.maximum(self._own[best], np.finfo(np.float64).tiny)
        return Pairs(self.X[rows], self.X[best], scale, self.sides[rows])

    def _excluded(self, rows: NDArray[np.intp], preimage: Preimage) -> NDArray[np.bool_]:
        """Which of the data must not replace the mirror vectors of these rows, (rows, n).

        If no data lie on the other side, only v itself is excluded.
        """
        same = self._row[rows][:, None] == self._row
        if preimage == "any":
            return np.zeros_like(same)
        if preimage == "other" or len(np.unique(self.sides)) == 1:
            return np.asarray(same)
        return np.asarray(self.sides[rows][:, None] == self.sides)

    def free_preimages(self, pairs: Pairs, search: Search, progress: Progress) -> Pairs:
        """The pairs with U moved to the best pre-image (eq. 13), by a search for reduced sets.

        The best pre-image is next to v, where all distances are small and say little. So a search ends where it would
        cross the hyperplane.
        """
        self.kernel.require_gradient("preimage='free'")
        V, U = (np.asarray(dense(part), dtype=np.float64) for part in (pairs.V, pairs.U))
        points, alpha = np.asarray(dense(self.planes.machine.points)), self.planes.coef[:, self.output]
        g_v = self._decide(V)
        moved = U.copy()
        for k, (v, u) in enumerate(zip(V, U, strict=True)):
            weights = np.append(1.0, -2.0 * g_v[k] / self.square * alpha)[:, None]
            target = Expansion(self.kernel, np.vstack([v, points]), weights, (weights[:, 0] > 0).astype(np.intp))
            moved[k] = self._search(target, u, pairs.side[k], search)
            progress.tell("%d of %d pre-images", k + 1, len(U))
        R2 = np.array([self.kernel.gram(v[None], u[None])[0, 0] for v, u in zip(V, moved, strict=True)])
        R2 -= 2.0 * g_v / self.square * (self._decide(moved) - self.b)
        own = np.maximum(self.kernel.diagonal(moved), np.finfo(np.float64).tiny)
        return Pairs(V, moved, R2 / own, pairs.side)

    def _decide(self, Z: FloatArray) -> FloatArray:
        """g at the rows of Z."""
        return self.planes.scores(Z)[:, self.output]

    def _search(self, target: Expansion, start: FloatArray, side: float, search: Search) -> FloatArray:
        """The best point of a search for the pre-image of `target` before it reaches v's side."""
        residual = Residual(target)
        best = start if target.centre is None else start - target.centre

        def inside(z: FloatArray) -> bool:
            return bool((self._decide(target.add_centre(z)[None])[0] >= 0) != (side > 0))

        def keep(z: FloatArray) -> None:
            nonlocal best
            if inside(z):
                best = z
                return
            low, high = 0.0, 1.0  # the share of the last step that stays inside
            for _ in range(HALVINGS):
                share = 0.5 * (low + high)
                low, high = (share, high) if inside(best + share * (z - best)) else (low, share)
            at = best + low * (z - best)
            best = at if residual.loss(at)[0] < residual.loss(best)[0] else best
            raise _CrossedError

        first = best
        tolerance = TOLERANCE * target.scale
        try:
            if search == "lbfgs":
                lbfgs(residual.loss, first, tolerance=tolerance, unit=target.width, on_best=keep)
            elif search == "irprop":
                irprop(residual.loss, first, first_step=first_step(target), tolerance=tolerance, on_best=keep)
            else:
                residual.iterate(first, tolerance, keep)
        except _CrossedError:
            pass
        return np.asarray(target.add_centre(best))


class _CrossedError(Exception):
    """A search has crossed the hyperplane."""


def table(kernel: Kernel, pairs: Pairs, X: Any) -> NDArray[np.float32]:
    """Ξ_k(x_j) = f(v_k) (d(x_j, β_k φ(u_k)) − d(x_j, φ(v_k))) (eq. 9), (K, n), in the compiled core."""
    rows = []
    for a in range(0, len(pairs), TABLE_PAIRS):
        some = pairs.take(slice(a, a + TABLE_PAIRS))
        points, head = combine_pairs(some, np.diag(some.side), np.zeros(len(some)))
        machine = KernelMachine(kernel, points, head, Value(flat=False))
        rows.append(machine.scores(X, n_jobs=-1).T.astype(np.float32))
    return np.ascontiguousarray(np.concatenate(rows))


def combine_pairs(pairs: Pairs, weights: FloatArray, offsets: FloatArray) -> tuple[Any, MirrorHead]:
    """Distinct points, and the head of scores Σ_k W_kc (d(x, β_k φ(u_k)) − d(x, φ(v_k))) + b_c with W (K, q)."""
    both = stack_points([pairs.V, pairs.U])
    first, owner = distinct_rows(both)
    scales = np.concatenate([np.ones(len(pairs)), pairs.scale])
    sites, place = np.unique(np.column_stack([owner, scales]), axis=0, return_inverse=True)
    coef = np.zeros((len(sites), weights.shape[1]))
    np.add.at(coef, place.ravel(), np.concatenate([-weights, weights]))
    head = MirrorHead(coef, offsets, tuple(sites[:, 0].astype(int).tolist()), sites[:, 1])
    return both[first], head


def join_pairs(parts: Sequence[Pairs]) -> Pairs:
    """All pairs of several sets."""
    numbers = ([getattr(part, name) for part in parts] for name in ("scale", "side"))
    return Pairs(
        stack_points([part.V for part in parts]),
        stack_points([part.U for part in parts]),
        *map(np.concatenate, numbers),
    )


def count_vectors(pairs: Pairs) -> int:
    """The number of distinct vectors among V and U."""
    return len(distinct_rows(stack_points([pairs.V, pairs.U]))[0])
