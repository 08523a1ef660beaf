"""What `compress` was asked for: one frozen record, checked once, that travels down whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from slimsvm.compression.promise import Promise
from slimsvm.data import Rows
from slimsvm.methods.settings import (
    BY_NAME,
    Growing,
    MethodSettings,
    MirrorPoints,
    ReducedSet,
    Selection,
    SparseMargin,
)
from slimsvm.parameters import check_number

Calibrate = Literal["auto", "sigmoid", "isotonic"] | None
Fuse = bool | Literal["auto"]
S = TypeVar("S", ReducedSet, SparseMargin, Selection, Growing, MirrorPoints)


@dataclass(frozen=True)
class Request:
    """The arguments of `compress`, or those of `frontier` that it shares.

    `method` is None for "auto". `promise` holds the limits; `n_vectors` is as the user gave it, a count, a share of the
    parent's vectors, or several of these.
    """

    model: Any
    X: Any = None
    y: Any = None
    promise: Promise = field(default_factory=Promise)
    n_vectors: Any = None
    scoring: Any = None
    cv: Any = None
    validation: Any = None
    groups: Any = None
    sample_weight: Any = None
    method: MethodSettings | None = None
    calibrate: Calibrate = "auto"
    fuse: Fuse = False
    max_time: float | None = None
    seed: int = 0
    n_jobs: int | None = None
    verbose: int = 0
    whose: str = "compress"

    @property
    def validated(self) -> bool:
        """Whether machines are judged on held-out samples."""
        return bool(self.promise.as_dict()) or self.cv is not None or self.validation is not None

    @property
    def labelled(self) -> bool:
        """Whether some of the data have labels."""
        pair = isinstance(self.validation, (tuple, list)) and len(self.validation) == 2
        return (self.X is not None and self.y is not None) or (pair and self.validation[1] is not None)

    @property
    def max_distance(self) -> float | None:
        """The largest relative distance of a reduced set, if one was asked for."""
        return self.method.max_distance if isinstance(self.method, ReducedSet) else None

    def settings(self, kind: type[S]) -> S:
        """The settings of the method that was asked for, if they are of this kind, else the default ones."""
        return self.method if isinstance(self.method, kind) else kind()

    def check(self) -> None:
        """Refuse arguments that do not go together."""
        whose, promise, sized = self.whose, self.promise, self.n_vectors is not None
        asked = sized or bool(promise.as_dict())
        promise.check(whose)
        check_number(self.max_time, "max_time", whose, above=0, optional=True)
        if self.method is not None:
            self.method.check(whose)
        if isinstance(self.X, Rows):
            self._check_rows()
        if self.max_distance is not None and asked:
            raise ValueError(
                f"{whose} takes max_distance alone: with n_vectors or a promise the size is given by these. Leave one "
                f"out."
            )
        sized_only = SparseMargin | Selection | Growing
        if isinstance(self.method, sized_only) and not asked:
            name = self.method.name
            raise ValueError(f"method={name!r} of {whose} goes with a size or a promise, such as max_loss=0.005.")
        if self.cv is not None and self.validation is not None:
            raise ValueError(f"{whose} takes cv or validation, not both: either folds are held out or other data.")
        if self.groups is not None and self.validation is not None:
            raise ValueError(f"groups of {whose} go with cv: validation data are held out as they are. Leave one out.")
        if self.groups is not None and self.cv is None and asked and not promise.limits:
            raise ValueError(
                f"groups of {whose} are for folds, and none are made here. Pass cv=5, say, or leave them out."
            )
        for name in ("cv", "validation", "groups", "scoring"):
            if getattr(self, name) is not None and not asked:
                raise ValueError(f"{name} of {whose} goes with a promise, such as max_loss=0.005, or with n_vectors.")
        if self.max_time is not None and not promise.as_dict() and not isinstance(self.X, Rows):
            raise ValueError(
                f"max_time of {whose} limits the search for a size, and none is made here. Pass a promise, such as "
                f"max_loss=0.005, or leave max_time out."
            )

    def _check_rows(self) -> None:
        """Refuse what rows in blocks cannot be used for."""
        whose, method = self.whose, self.method
        for name in ("cv", "groups"):
            if getattr(self, name) is not None:
                raise ValueError(
                    f"{name} of {whose} is for folds, and rows in blocks have none. Leave it out and pass "
                    f"validation=(X_val, y_val)."
                )
        if self.promise.limits and self.validation is None:
            raise ValueError(
                f"max_{next(iter(self.promise.limits))} of {whose} is judged on held-out data, and rows in blocks have "
                f"no folds. Pass validation=(X_val, y_val)."
            )
        if method is not None and method.name != "sparse_margin":
            raise ValueError(
                f"method={method.name!r} of {whose} needs data in memory. Rows in blocks are for 'sparse_margin'."
            )
        if self.n_vectors is None and not self.promise.as_dict():
            raise ValueError(f"X of {whose} as rows in blocks goes with n_vectors or with a promise. Pass one of them.")


def method_settings(method: Any, whose: str) -> MethodSettings | None:
    """The settings that a method's name stands for; None for "auto"."""
    if isinstance(method, MethodSettings):
        return method
    names = ("auto", *BY_NAME)
    if not isinstance(method, str) or method not in names:
        raise ValueError(
            f"method of {whose} must be one of {', '.join(map(repr, names))}, or settings such as "
            f"slimsvm.methods.ReducedSet(). Got {method!r}."
        )
    return None if method == "auto" else BY_NAME[method]
