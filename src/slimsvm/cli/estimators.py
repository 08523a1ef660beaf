"""The estimator that `train` fits, from its flags and -O settings."""

from __future__ import annotations

import inspect
from typing import Any

from slimsvm.cli.errors import UsageFailure, library_errors
from slimsvm.cli.trainers import TRAINERS


def make_estimator(method: str, given: dict[str, Any], settings: dict[str, Any], seed: int) -> Any:
    """The unfitted estimator of a method; a flag or -O setting that it does not have is refused."""
    cls = TRAINERS[method].load()
    known = inspect.signature(cls).parameters
    for option in given:
        if option not in known:
            raise UsageFailure(f"--{option.replace('_', '-')} is not an option of the method {method}.")
    for option in settings:
        if option not in known:
            names = ", ".join(sorted(known))
            raise UsageFailure(f"-O {option} is not an option of the method {method}. The options are {names}.")
        if option in given:
            raise UsageFailure(f"-O {option} and --{option.replace('_', '-')} set the same option. Give one of them.")
    seeded = {"random_state": seed} if "random_state" in known else {}
    with library_errors():
        return cls(**seeded | given | settings)


def accepts(estimator: Any, name: str) -> bool:
    """Whether an estimator has a parameter."""
    return name in inspect.signature(type(estimator)).parameters
