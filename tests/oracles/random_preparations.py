"""Random preparations with every kind of part and step, and tables that they can read."""

from __future__ import annotations

from typing import Any

import numpy as np

from slimsvm.input_map import InputMap
from slimsvm.preparation import (
    FUNCTIONS,
    Above,
    Clip,
    Fill,
    Function,
    Lookup,
    Missing,
    Norm,
    Numeric,
    Power,
    Preparation,
    Quantiles,
    Scale,
    Step,
)

CITIES = np.array(["Bonn", "Köln", 'a "quoted" city', "*/ ?"], dtype=object)
NAMES = ("age", "income", "city", "size", "not used")


def random_steps(rng: np.random.Generator) -> list[tuple[Step, ...]]:
    """Chains of steps, each after a fill: all kinds of them."""
    a, b = (float(v) for v in rng.normal(size=2))
    quantiles = np.sort(rng.normal(size=5))
    name = str(rng.choice(["arctan", "cbrt", "tanh", "arcsinh"]))
    assert name in FUNCTIONS
    return [
        (Fill(a),),
        (Fill(a, marker=-7.0), Fill(b), Clip(min(a, b) - 1.0, max(a, b) + 1.0)),
        (Missing(None if a > 0 else -7.0), Scale(a)),
        (Fill(a), Scale(b, 2.0 + a * a, -1.5, a), Function(name)),  # type: ignore[arg-type]
        (Fill(a), Above(b)),
        (Fill(a), Power("yeo-johnson", b)),
        (Fill(a), Quantiles(quantiles, np.linspace(0, 1, 5), normal=b > 0)),
    ]


def random_preparation(rng: np.random.Generator, mixed: bool = False) -> Preparation:
    """A preparation of five columns: numbers, categories as text and as numbers, one that is not used."""
    fill = Fill(float(rng.normal()))
    numeric = [Numeric(int(rng.integers(2)), steps) for steps in random_steps(rng)]
    places = tuple(int(row) for row in rng.integers(-1, 3, size=len(CITIES)))
    table = rng.normal(size=(4, 2))
    lookups = [
        Lookup(2, places, 3, categories=CITIES, missing=1, unknown=-1),
        Lookup(2, (0, 1, 2, 2), 2, categories=CITIES, missing=3, unknown=-1, table=table),
        Lookup(3, (2, 0, 1), 3, categories=np.array([1, 2, 5]), missing=0, unknown=1),
        Lookup(0, (0, 1, 2), 1, (fill,), edges=np.sort(rng.normal(size=2)), table=rng.normal(size=(3, 1))),
    ]
    parts = (*numeric[:3], *lookups[:2], *numeric[3:], *lookups[2:])
    if not mixed:
        return Preparation(5, parts, NAMES)
    width = sum(part.n_numbers for part in parts)
    mixing = InputMap(rng.normal(size=width), rng.normal(size=(6, width)))
    kinds = rng.permutation(["l1", "l2", "max"])
    return Preparation(5, parts, None, mixing, (Norm(str(kinds[0]), 0, 2), Norm(str(kinds[1]), 3, 6)))  # type: ignore[arg-type]


def random_rows(rng: np.random.Generator, n: int) -> dict[str, list[Any]]:
    """Columns of n rows with missing values and unknown categories."""

    def some(values: list[Any]) -> list[Any]:
        return [None if rng.random() < 0.15 else value for value in values]

    return {
        "age": some(rng.normal(size=n).tolist()),
        "income": some(np.where(rng.random(n) < 0.2, -7.0, rng.normal(size=n)).tolist()),
        "city": some([[*CITIES.tolist(), "Rom"][i] for i in rng.integers(0, 5, n)]),
        "size": some(rng.integers(1, 7, n).tolist()),
        "not used": ["x"] * n,
    }
