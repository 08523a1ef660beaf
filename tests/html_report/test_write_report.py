"""The HTML report: what each section says, what is left out, and that text stays text."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_digits, make_moons
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, OneClassSVM

import slimsvm
from slimsvm.report import Report
from slimsvm.tradeoff.survey import COLUMNS
from slimsvm.tradeoff.table import Frontier

pytest.importorskip("jinja2")

MOST_BYTES = 300_000
VOID = {"meta", "img", "br", "input", "link"}


class Outline(HTMLParser):
    """Ids, headings, text, and whether every element is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.unnamed: list[str] = []
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        found = dict(attrs)
        self.tags.append(tag)
        self.ids += [found["id"]] if "id" in found else []
        self.addresses += [str(found[name]) for name in ("src", "href") if name in found]
        if (tag == "svg" and "aria-label" not in found and found.get("aria-hidden") != "true") or (
            tag == "img" and "alt" not in found
        ):
            self.unnamed.append(str(attrs)[:80])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data


def outline(path: Path) -> Outline:
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < MOST_BYTES
    found = Outline()
    found.feed(text)
    assert not found.open
    assert len(set(found.ids)) == len(found.ids)
    assert not found.unnamed
    return found


def a_frontier() -> Frontier:
    rows = [
        ("parent", "parent", 0, 100, 100, 2, 300, 900, 50.0, 5.0, 0.95, 0.01, 0.0, 0.0, 1.0),
        ("sparse_margin", "machine", 5, 5, 5, 2, 15, 60, 4.0, 0.1, 0.94, 0.01, 0.01, 0.004, 0.98),
        ("sparse_margin", "machine", 10, 10, 10, 2, 30, 120, 4.1, 0.2, 0.948, 0.01, 0.002, 0.003, 0.99),
        ("<b>trees</b>", "baseline", 10, 0, 0, 0, 0, 9000, 90.0, 3.0, 0.93, 0.01, 0.02, 0.01, 0.97),
    ]
    return Frontier(np.array(rows, dtype=COLUMNS), "accuracy", {})


@pytest.fixture(scope="module")
def moons() -> Any:
    X, y = make_moons(400, noise=0.3, random_state=0)
    labels = np.array(["<left>", 'right & "co"'])[y]
    svc = SVC(C=10).fit(X[::2], labels[::2])
    small = slimsvm.compress(
        svc, X[::2], labels[::2], n_vectors=6, method="reduced_set", calibrate="sigmoid", random_state=0
    )
    return svc, small, X[1::2], labels[1::2]


def test_a_classifier_has_every_section(moons: Any, tmp_path: Path) -> None:
    svc, small, X, y = moons
    path = slimsvm.write_report(
        small, X, y, tmp_path / "r.html", parent=svc, frontier=a_frontier(), title="<script>alert(1)</script>",
        notes={"seed": 0, "<i>data": "</dd>"},
    )  # fmt: skip
    page = outline(path)
    wanted = {"promise", "costs", "trade_off", "answers", "disagreement", "reliability", "vectors", "origin"}
    assert wanted <= set(page.ids)
    assert page.tags.count("script") == 1
    assert page.tags.count("b") == page.tags.count("i") == 0
    assert "<left>" in page.text
    assert "<b>trees</b>" in page.text
    accuracy, before = np.mean(small.predict(X) == y), np.mean(svc.predict(X) == y)
    assert f"{100 * accuracy:.2f} % right" in page.text
    assert f"{100 * before:.2f} % right" in page.text
    assert f"{int((svc.predict(X) != small.predict(X)).sum())} of 200 predictions differ" in page.text
    assert small.machine_.digest() in page.text


def test_the_page_loads_nothing(moons: Any, tmp_path: Path) -> None:
    svc, small, X, y = moons
    path = slimsvm.write_report(small, X, y, tmp_path / "r.html", parent=svc, frontier=a_frontier())
    page = outline(path)
    assert all(address.startswith(("#", "data:image/png")) for address in page.addresses)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"https?://|url\(|@import|fetch\(|import\(", text)


def test_sections_without_a_source_are_left_out(moons: Any, tmp_path: Path) -> None:
    _, small, X, y = moons
    bare = set(outline(slimsvm.write_report(small.machine_, None, None, tmp_path / "a.html")).ids)
    assert {"costs", "origin"} <= bare
    assert not {"promise", "trade_off", "answers", "disagreement", "reliability"} & bare
    alone = set(outline(slimsvm.write_report(small, X, None, tmp_path / "b.html")).ids)
    assert "promise" in alone
    assert not {"answers", "disagreement", "reliability", "trade_off"} & alone
    labelled = set(outline(slimsvm.write_report(small, X, y, tmp_path / "c.html")).ids)
    assert {"answers", "reliability"} <= labelled
    assert "disagreement" not in labelled


def test_images_and_projections(tmp_path: Path) -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16, y[:300]
    small = slimsvm.SparseLargeMarginClassifier(
        n_vectors=12, metric="projection", n_components=4, max_iter=5, random_state=0
    ).fit(X, y)
    page = outline(slimsvm.write_report(small, X, y, tmp_path / "r.html", parent=SVC().fit(X, y), image_shape=(8, 8)))
    assert {"metric", "vectors"} <= set(page.ids)
    assert sum(address.startswith("data:image/png") for address in page.addresses) >= 16


def test_regressions_outliers_pipelines_and_machines(tmp_path: Path) -> None:
    X, y = load_diabetes(return_X_y=True)
    svr = SVR(C=100).fit(X, y)
    page = outline(
        slimsvm.write_report(slimsvm.compress(svr, n_vectors=9, random_state=0), X, y, tmp_path / "v.html", parent=svr)
    )
    assert "root mean squared error" in page.text
    assert "R²" in page.text
    one = OneClassSVM(nu=0.2).fit(X)
    page = outline(
        slimsvm.write_report(
            slimsvm.compress(one, n_vectors=9, random_state=0), X, None, tmp_path / "o.html", parent=one
        )
    )
    assert "Inliers" in page.text
    labels = y > 140
    pipeline = make_pipeline(StandardScaler(), SVC()).fit(X, labels)
    small = slimsvm.compress(pipeline, n_vectors=9, random_state=0)
    assert "Confusion matrices" in outline(slimsvm.write_report(small, X, labels, tmp_path / "p.html")).text


def test_many_classes_show_the_most_frequent_mistakes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), rng.integers(0, 30, 600)
    small = slimsvm.compress(SVC().fit(X, y))
    assert "The most frequent mistakes." in outline(slimsvm.write_report(small, X, y, tmp_path / "r.html")).text


def test_mistakes_are_told(moons: Any, tmp_path: Path) -> None:
    svc, small, X, y = moons
    with pytest.raises(TypeError, match="write_report takes a KernelMachine"):
        slimsvm.write_report(svc, X, y, tmp_path / "r.html")
    with pytest.raises(ValueError, match="Pass X too"):
        slimsvm.write_report(small, None, y, tmp_path / "r.html")
    with pytest.raises(ValueError, match="one label for each of the 200 rows"):
        slimsvm.write_report(small, X, y[:3], tmp_path / "r.html")
    with pytest.raises(TypeError, match="parent of write_report must be a fitted model"):
        slimsvm.write_report(small, X, y, tmp_path / "r.html", parent=3)
    with pytest.raises(TypeError, match=r"frontier of write_report must be what slimsvm\.frontier returns"):
        slimsvm.write_report(small, X, y, tmp_path / "r.html", frontier=[1])
    with pytest.raises(ValueError, match="image_shape of write_report"):
        slimsvm.write_report(small, X, y, tmp_path / "r.html", image_shape=(3, 3))
    assert not list(tmp_path.iterdir())


def test_a_report_in_a_notebook() -> None:
    report = Report({"max_loss": 0.01}, "selection", "a <b> & c", 4, 66, estimate=0.004, standard_error=0.003)
    text = report._repr_html_()
    assert "a &lt;b&gt; &amp; c" in text
    assert 'aria-label="Loss 0.40 ± 0.30 points, limit 1"' in text
    bare = Report({}, "exact", "it was asked for", 66, 66)._repr_html_()
    assert "<svg" not in bare


@pytest.mark.parametrize(
    ("estimate", "words"), [(0.004, "0.6 standard errors away"), (-0.02, "well supported"), (0.02, "above the limit")]
)
def test_the_promise_in_words(moons: Any, tmp_path: Path, estimate: float, words: str) -> None:
    _, small, *_ = moons
    model = slimsvm.estimator.wrap(small.machine_)
    model.report_ = Report({"max_loss": 0.01}, "selection", "x", 4, 66, estimate=estimate, standard_error=0.01)
    assert words in outline(slimsvm.write_report(model, None, None, tmp_path / "r.html")).text
