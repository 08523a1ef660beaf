"""The steps of `descent.py` by the compiled core, for the Gaussian kernel in single precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm import _core
from slimsvm._record import FloatArray, is_sparse
from slimsvm.kernels import Kernel, Rbf
from slimsvm.methods.large_margin.batch import NARROW, Array, Batch, Order
from slimsvm.methods.large_margin.descent import DAMPING, NEWTON_RATE, Descent, Scales
from slimsvm.methods.large_margin.metric import Placement, Pull
from slimsvm.optim import calm_blas
from slimsvm.optim.margin_problem import Loss


def make_descent(
    kernel: Kernel, start: Placement, W: FloatArray, scales: Scales, loss: Loss, pull: Pull | None = None
) -> Descent:
    """A descent by the compiled core if it can do this one, else by NumPy."""
    plain = not isinstance(kernel, Rbf) or scales.dtype != np.float32 or (pull is not None and pull.keeps_volume)
    made = Descent if plain or not _core.available else CompiledDescent
    return made(kernel, start, W, scales, loss, pull)


class CompiledDescent(Descent):
    """A descent whose numbers are in the core while it makes steps.

    `fetch` brings them back into the arrays that `Descent` has, and changes to these arrays reach the core by `push`.
    """

    _core_steps: Any = None
    _n_threads = 1
    _is_ahead = False  # whether the core has made steps since the last fetch

    @property
    def place(self) -> Placement:
        self.fetch()
        return super().place

    @property
    def coefficients(self) -> FloatArray:
        self.fetch()
        return super().coefficients

    def set_coefficients(self, W: FloatArray) -> None:
        self.fetch()
        super().set_coefficients(W)
        self.push()

    def set_state(self, place: Placement, W: FloatArray) -> None:
        self.fetch()
        super().set_state(place, W)
        self.push()

    def replace_vectors(self, which: Order, X: Any) -> None:
        self.fetch()
        super().replace_vectors(which, X)
        self.push()

    def __getstate__(self) -> dict[str, Any]:
        self.fetch()
        return vars(self) | {"_core_steps": None}

    def fetch(self) -> None:
        """Bring the arrays up to date."""
        if self._is_ahead:
            self._core_steps.read(*self._arrays())
            self._is_ahead = False

    def push(self) -> None:
        """Give the arrays to the core."""
        if self._core_steps is not None:
            self._core_steps.write(*self._arrays())

    def run(self, rows: Batch, order: Order, batch: int, *given: Any, **named: Any) -> float:
        self._n_threads = _core.threads(-1, self._work(batch))  # asked once, because joblib reads files to know
        with calm_blas(0.0):  # threads of BLAS spin after each product, and those of the core need the processors
            return super().run(rows, order, batch, *given, **named)

    def refresh(self, batch: Batch, keep: float = 0.0) -> None:
        self.fetch()
        super().refresh(batch, keep)
        if self._core_steps is not None:
            self._core_steps.write_inverse(self.inverse)

    def evaluate(self, rows: Batch) -> tuple[float, FloatArray]:
        if not self._can_read(rows):
            self.fetch()
            return super().evaluate(rows)
        self._begin(rows)
        by_W = np.zeros(self.W.shape)
        return _core.evaluate_steps(self._core_steps, rows.X, rows.centre, _parts(rows), by_W, self.smooth), by_W

    def _curvature(self, batch: Batch) -> Array:
        if not self._can_read(batch):
            return super()._curvature(batch)
        self._begin(batch)
        H = np.empty((len(self.W), len(self.W)), dtype=np.float32)
        _core.curvature_of_steps(self._core_steps, batch.X, batch.centre, _parts(batch), DAMPING, H)
        return H

    def sums(self, rows: Batch) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        if not self._can_read(rows):
            self.fetch()
            return super().sums(rows)
        self._begin(rows)
        by_A = np.zeros(0 if self.A is None else self.A.shape)
        gradients = np.zeros(self.W.shape), np.zeros(self.Z.shape), by_A
        where = self._core_steps, rows.X, rows.centre, _parts(rows)
        return _core.gradients_of_steps(*where, gradients, self.smooth), *gradients

    def features(self, batch: Batch) -> Array:
        self.fetch()
        return super().features(batch)

    def _steps(self, rows: Batch, order: Order, batch: int, calm: Array, warm: Array) -> float:
        if not self._can_read(rows):
            self.fetch()
            value = super()._steps(rows, order, batch, calm, warm)
            self.push()
            return value
        self._begin(rows)
        own = self.n_penalised(batch)
        where = rows.X, rows.centre, _parts(rows), order, batch
        value = _core.run_steps(self._core_steps, *where, own, self.n_steps, calm, warm, self._n_threads)
        self.n_steps += len(calm)
        self._is_ahead = True
        return value

    @staticmethod
    def _can_read(rows: Batch) -> bool:
        """Whether the core may make rows dense."""
        return not is_sparse(rows.X) or rows.X.shape[1] <= NARROW

    def _begin(self, rows: Batch) -> None:
        if self._core_steps is None:
            self._core_steps = self._make(len(rows.sign) // rows.n_rows)
            if self.inverse is not None:
                self._core_steps.write_inverse(self.inverse)
            self.push()

    def _is_finite(self) -> bool:
        return bool(self._core_steps.is_finite()) if self._is_ahead else super()._is_finite()

    def _work(self, batch: int) -> float:
        """The multiplications of a step, times four: threads stay awake between steps, so small ones gain from them."""
        m, p = self.Z.shape
        return 4.0 * batch * float(3 * m * p + (0 if self.A is None else 2 * self.A.size))

    def _arrays(self) -> tuple[Array, ...]:
        vectors, none = self.vectors, np.zeros(0, dtype=np.float32)
        of_map = (none, none, none) if self.map is None else (self.map.x, self.map.mean, self.map.square)
        return vectors.x, vectors.mean, vectors.square, *of_map, self.W, self.W_mean

    def _make(self, copies: int) -> Any:
        m, p = self.Z.shape
        pull = self.pull
        return _core.steps(
            map="none" if self.A is None else "diagonal" if self.A.ndim == 1 else "projection",
            d=p if self.A is None else self.A.shape[-1],
            p=p,
            m=m,
            copies=copies,
            power=self.power,
            gamma=self.kernel.gamma,
            ridge=self.ridge,
            tilt=self.tilt,
            vectors_unit=self.scales.width,
            vectors_rate=self.vectors.rate,
            map_rate=0.0 if self.map is None else self.map.rate,
            newton_rate=NEWTON_RATE,
            map_unit=None if self.map is None else self.map.unit,
            pull_start=None if pull is None else pull.start.astype(np.float32),
            pull_weights=None if pull is None else pull.weights.astype(np.float32),
            pull_scale=self.pull_scale,
        )


def _parts(rows: Batch) -> tuple[Array, Array, Array]:
    return rows.sign, rows.offset, rows.cost
