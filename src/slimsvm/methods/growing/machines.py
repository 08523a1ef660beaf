"""The machines of all steps of growing, on vectors that they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

from numpy.typing import NDArray

from slimsvm._record import FloatArray
from slimsvm.answers import Classes
from slimsvm.heads import LinearHead
from slimsvm.kernels import Kernel
from slimsvm.machine import KernelMachine

Coefficients = tuple[FloatArray, FloatArray]  # coefficients (m, q) of the first m vectors, and intercepts (q,)


class StepMachines(Sequence[KernelMachine]):
    """A list of machines, one per step, each made when it is asked for: only their coefficients are stored apart.

    The machine of a step has the first vectors, as many as it has coefficients. `gammas` are the widths of the vectors
    if each has its own, else None.
    """

    def __init__(
        self,
        kernel: Kernel,
        classes: NDArray[Any],
        feature_names: tuple[str, ...] | None,
        vectors: Any,
        gammas: FloatArray | None,
        coefficients: Sequence[Coefficients] = (),
    ) -> None:
        self.kernel, self.classes, self.feature_names = kernel, classes, feature_names
        self.vectors, self.gammas, self.coefficients = vectors, gammas, list(coefficients)

    def __len__(self) -> int:
        return len(self.coefficients)

    @overload
    def __getitem__(self, index: int) -> KernelMachine: ...
    @overload
    def __getitem__(self, index: slice) -> list[KernelMachine]: ...
    def __getitem__(self, index: int | slice) -> KernelMachine | list[KernelMachine]:
        if isinstance(index, slice):
            return [self.make(*one) for one in self.coefficients[index]]
        return self.make(*self.coefficients[index])

    def make(self, coef: FloatArray, intercept: FloatArray) -> KernelMachine:
        """The machine with these coefficients (m, q) and intercepts (q,)."""
        m, head, answer = len(coef), LinearHead(coef, intercept), Classes(self.classes)
        gammas = None if self.gammas is None else self.gammas[:m]
        return KernelMachine(
            self.kernel, self.vectors[:m], head, answer, gammas=gammas, feature_names=self.feature_names
        )
