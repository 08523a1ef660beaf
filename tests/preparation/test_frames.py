"""Tables of every kind that a preparation reads, single rows, and what is wrong with them in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from oracles.random_preparations import CITIES, NAMES, random_preparation, random_rows
from slimsvm.preparation import Lookup, Numeric, Preparation, Scale

COLUMNS = random_rows(np.random.default_rng(1), 60)
PREPARATION = random_preparation(np.random.default_rng(2))
N = len(COLUMNS["age"])
SHORT = [name for name in NAMES if name.isidentifier()]


def pandas(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns)


def nullable(columns: dict[str, list[Any]]) -> Any:
    return pandas(columns).convert_dtypes()


def categorical(columns: dict[str, list[Any]]) -> Any:
    frame = pandas(columns)
    frame["city"] = frame["city"].astype("category")
    return frame


def polars(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("polars").DataFrame(columns)


def arrow(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pyarrow").table(columns)


def structured(columns: dict[str, list[Any]]) -> Any:
    kinds = [(name, object if name == "city" else "U4" if name == "not used" else "f8") for name in NAMES]
    values = [[np.nan if v is None and name != "city" else v for v in columns[name]] for name in NAMES]
    return np.array(list(zip(*values, strict=True)), dtype=kinds)


def rows_of(columns: dict[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def tuples(columns: dict[str, list[Any]]) -> list[tuple[Any, ...]]:
    return list(zip(*columns.values(), strict=True))


def objects(columns: dict[str, list[Any]]) -> Any:
    return np.array(tuples(columns), dtype=object)


def arrays(columns: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: np.array(values, dtype=object) for name, values in columns.items()}


KINDS = [dict, pandas, nullable, categorical, polars, arrow, structured, rows_of, tuples, objects, arrays]
every_kind = pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)


def expected() -> Any:
    return PREPARATION.apply(COLUMNS)


@every_kind
def test_all_kinds_of_tables_give_the_same_numbers(make: Callable[..., Any]) -> None:
    np.testing.assert_array_equal(PREPARATION.apply(make(COLUMNS)), expected())


@every_kind
def test_a_row_alone_gives_the_numbers_of_the_batch(make: Callable[..., Any]) -> None:
    whole = expected()
    for row in range(20):
        alone = make({name: [values[row]] for name, values in COLUMNS.items()})
        np.testing.assert_array_equal(PREPARATION.apply(alone), whole[[row]])


def test_a_dict_a_tuple_and_a_record_are_one_row() -> None:
    records = structured(COLUMNS)
    for row in range(N):
        values = {name: column[row] for name, column in COLUMNS.items()}
        for one in (values, tuple(values.values()), records[row]):
            read = PREPARATION.read(one)
            assert read.ndim == 1
            np.testing.assert_array_equal(PREPARATION.matrix(read), expected()[[row]])


def test_a_loop_over_rows_and_columns_agrees() -> None:
    """The oracle: each part by itself, one value at a time, by its definition."""
    whole = expected()
    for row in range(N):
        for part, place in PREPARATION.placed():
            value = COLUMNS[NAMES[part.column]][row]
            if isinstance(part, Lookup) and part.categories is not None:
                known = part.categories.tolist()
                at = (
                    part.missing if value is None else part.rows[known.index(value)] if value in known else part.unknown
                )
            elif isinstance(part, Lookup):
                x = part.steps[0].of(np.nan if value is None else value)
                assert part.edges is not None
                at = part.rows[sum(edge <= x for edge in part.edges.tolist())]
            else:
                x = np.nan if value is None else float(value)
                for step in part.steps:
                    alone, x = step.of(x), step.apply(np.array([x]))[0]
                    assert alone == x or (alone != alone and x != x)
                assert whole[row, place.start] == x
                continue
            table = np.eye(part.width) if part.table is None else part.table
            np.testing.assert_array_equal(whole[row, place], np.zeros(part.width) if at < 0 else table[at])


def test_columns_are_found_by_name_in_any_order_and_others_are_not_read() -> None:
    shuffled = {name: COLUMNS[name] for name in reversed(NAMES) if name != "not used"} | {"more": ["y"] * N}
    for make in (pandas, polars, arrow, rows_of, dict):
        np.testing.assert_array_equal(PREPARATION.apply(make(shuffled)), expected())


def test_columns_without_names_are_found_by_place() -> None:
    bare = Preparation(PREPARATION.n_columns, PREPARATION.parts)
    np.testing.assert_array_equal(bare.apply(pandas(COLUMNS)), expected())
    with pytest.raises(ValueError, match="X must have 5 columns, as the model has"):
        bare.apply(pandas(COLUMNS).iloc[:, :4])
    with pytest.raises(ValueError, match="needs a model with names of columns"):
        bare.read({"age": 1.0})


def test_sparse_and_dense_numbers() -> None:
    preparation = Preparation(4, (Numeric(2), Numeric(0, (Scale(1.0, 2.0),))))
    X = np.random.default_rng(0).normal(size=(9, 4)) * (np.arange(36).reshape(9, 4) % 3 > 0)
    wanted = np.column_stack([X[:, 2], (X[:, 0] - 1.0) / 2.0])
    for given in (X, X[:, ::-1].copy()[:, ::-1], sparse.csr_array(X), sparse.coo_array(X), X.tolist()):
        np.testing.assert_array_equal(preparation.apply(given), wanted)
    np.testing.assert_array_equal(preparation.apply(X[0]), wanted[:1])


@every_kind
def test_a_missing_column_has_one_sentence(make: Callable[..., Any]) -> None:
    if make in (structured, tuples, objects, categorical):
        pytest.skip("columns by place, or a maker that needs all columns")
    less = {name: values for name, values in COLUMNS.items() if name != "city"}
    for table in (make(less), make({name: values[:1] for name, values in less.items()})):
        with pytest.raises(ValueError, match=r"X has no column 'city', which the model reads. Its columns are 'age',"):
            PREPARATION.apply(table)


STRICT = Preparation(2, (Numeric(0), Lookup(1, (0, 1, 2, 3), 4, categories=CITIES)), ("age", "city"))


@pytest.mark.parametrize("make", [dict, pandas, polars, arrow, rows_of], ids=lambda make: make.__name__)
def test_refused_values_name_column_row_and_value(make: Callable[..., Any]) -> None:
    good = {"age": [1.0, 2.0, 3.0], "city": ["Bonn", "Köln", "Bonn"]}
    bad = [
        ({"city": ["Bonn", "Rom", "Rom"]}, r"Column 'city' has the category 'Rom', first in row 1, which the model"),
        ({"city": ["Bonn", "Köln", None]}, r"Column 'city' has missing values, first in row 2, .* no rule for them"),
        ({"age": [1.0, None, 2.0]}, r"Column 'age' has missing values or NaN, first in row 1"),
        ({"age": ["1", "x", "2"]}, r"Column 'age' must hold numbers. Got 'x' in row 1"),
        ({"age": [1.0, 2.0, np.inf]}, r"Column 'age' has an infinite number, first in row 2"),
    ]
    for change, sentence in bad:
        with pytest.raises(ValueError, match=sentence):
            STRICT.apply(make(good | change))
    for value, sentence in (("Rom", "has the category 'Rom', which"), (None, "has missing values, and")):
        with pytest.raises(ValueError, match=f"Column 'city' {sentence}"):
            STRICT.read({"age": 1.0, "city": value})
    with pytest.raises(ValueError, match="must hold categories"):
        STRICT.read({"age": 1.0, "city": ["Bonn"], "x": 1})
    with pytest.raises(ValueError, match="Column 'age' must hold numbers"):
        STRICT.read({"age": "x", "city": "Bonn"})


def test_pandas_own_missing_values_and_booleans() -> None:
    pd = pytest.importorskip("pandas")
    flags = Lookup(0, (0, 1), 2, categories=np.array([False, True]), missing=0)
    preparation = Preparation(2, (flags, Lookup(1, (1,), 2, categories=np.array(["a"]), missing=0)))
    frame = pd.DataFrame({"flag": pd.array([True, False, pd.NA]), "text": pd.array(["a", pd.NA, "a"])})
    np.testing.assert_array_equal(preparation.apply(frame), [[0, 1, 0, 1], [1, 0, 1, 0], [1, 0, 0, 1]])
    for row in range(3):
        np.testing.assert_array_equal(preparation.apply(frame.iloc[[row]]), preparation.apply(frame)[[row]])


def test_bad_preparations_are_refused() -> None:
    for make, sentence in (
        (lambda: Preparation(1, ()), "at least one"),
        (lambda: Preparation(1, (Numeric(1),)), "columns below 1"),
        (lambda: Preparation(2, (Numeric(1),), ("a", "a")), "2 different names"),
        (lambda: Lookup(0, (0,), 1), "either categories or edges"),
        (lambda: Lookup(0, (0, 5), 2, categories=["a", "b"]), "rows of Lookup must be from -2 to 1"),
        (lambda: Lookup(0, (0,), 1, categories=["a", 3]), "one per category"),
        (lambda: Lookup(0, (0, 0), 1, categories=["a", "a"]), "different values"),
        (lambda: Lookup(0, (0, 0), 1, categories=np.array(["a", 3], dtype=object)), "all be strings"),
        (lambda: Scale(divisor=0.0), "must not be zero"),
        (lambda: Lookup(0, (0,), 10**9, categories=np.array(["a"])), "is too large"),
        (lambda: Preparation(2**40, (Numeric(0),)), "n_columns of Preparation may be at most"),
    ):
        with pytest.raises(ValueError, match=sentence):
            make()  # type: ignore[no-untyped-call]


def test_a_row_of_pandas_and_a_named_tuple_are_one_row() -> None:
    frame = pandas(COLUMNS).astype(object)
    named = list(frame[SHORT[::-1]].itertuples(index=False))  # the column that is not used has no name here
    for row in range(20):
        for one in (frame.iloc[row], named[row]):
            read = PREPARATION.read(one)
            assert read.ndim == 1
            np.testing.assert_array_equal(PREPARATION.matrix(read), expected()[[row]])


def test_columns_that_cannot_be_told_apart_or_do_not_fit_are_named() -> None:
    frame = pandas(COLUMNS)
    twice = pytest.importorskip("pandas").concat([frame, frame[["city"]]], axis=1)
    for table in (twice, twice.iloc[[0]]):
        with pytest.raises(ValueError, match="several columns 'city'"):
            PREPARATION.read(table)
    with pytest.raises(ValueError, match="Column 'city' has 1 row, and the longest has 60"):
        PREPARATION.read({**COLUMNS, "city": COLUMNS["city"][:1]})
    rows = rows_of(COLUMNS)
    del rows[3]["city"]
    with pytest.raises(ValueError, match="Row 3 of X has no value of 'city'"):
        PREPARATION.read(rows)


def test_dates_and_huge_numbers_are_no_numbers() -> None:
    dates = pandas(COLUMNS).assign(age=pytest.importorskip("pandas").Timestamp("2020-01-01"))
    with pytest.raises(ValueError, match="Column 'age' must hold numbers"):
        PREPARATION.read(dates)
    with pytest.raises(ValueError, match="Column 'age' has an infinite number"):
        PREPARATION.read({name: values[1] for name, values in COLUMNS.items()} | {"age": 10**400})


def test_a_lazy_frame_must_be_collected() -> None:
    with pytest.raises(ValueError, match=r"collect\(\)"):
        PREPARATION.read(pytest.importorskip("polars").DataFrame(COLUMNS).lazy())
