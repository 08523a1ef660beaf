"""The HTML report in Chromium: slider, hover, keyboard, phone width and printing."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.svm import SVC

import slimsvm
from slimsvm.tradeoff.table import Frontier

pytest.importorskip("selenium")
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Frontier]:
    X, y = make_moons(600, noise=0.3, random_state=0)
    svc = SVC(C=10).fit(X[::2], y[::2])
    small = slimsvm.compress(
        svc, X[::2], y[::2], n_vectors=6, method="reduced_set", calibrate="sigmoid", random_state=0
    )
    held_out = X[1::2], y[1::2]
    curve = slimsvm.frontier(
        svc, X[::2], y[::2], validation=held_out, sizes=[2, 4, 8, 16], methods=["selection", "reduced_set"],
        baselines=["nystroem"], random_state=0,
    )  # fmt: skip
    path = tmp_path_factory.mktemp("report") / "report.html"
    return slimsvm.write_report(small, *held_out, path, parent=svc, frontier=curve, title="Moons"), curve


@pytest.fixture
def page(browser: Any, report: Any) -> Any:
    browser.set_window_size(1200, 900)
    browser.get(report[0].as_uri())
    return browser


def cheapest(curve: Frontier, cost: str, budget: float) -> Any:
    """The row that the slider should choose."""
    rows = curve.records[np.isfinite(curve.records["score"]) & (curve.records[cost] > 0)]
    loss = np.where(rows["kind"] == "parent", 0.0, rows["loss"])
    rows = rows[(rows["kind"] != "baseline") & (loss <= budget + 1e-12)]
    return rows[np.lexsort((-rows["score"], rows[cost]))[0]]


def choice(page: Any) -> str:
    return str(page.find_element(By.ID, "choice").text)


def test_the_slider_chooses_the_cheapest_model_within_the_budget(page: Any, report: Any) -> None:
    slider = page.find_element(By.ID, "budget")
    said = set()
    for key in (Keys.HOME, *[Keys.ARROW_RIGHT] * 30, Keys.END):
        slider.send_keys(key)
        row = cheapest(report[1], "multiply_adds", float(slider.get_attribute("value")))
        assert f"{row['method']}, {row['vectors']:,.0f} vectors" in choice(page)
        said.add(choice(page))
    assert len(said) > 1
    assert len(page.find_elements(By.CSS_SELECTOR, ".chart:not([hidden]) .point.chosen")) == 1
    line = page.find_element(By.CSS_SELECTOR, ".chart:not([hidden]) .budget")
    assert float(line.get_attribute("y1")) > 0


def test_another_cost_shows_another_chart(page: Any, report: Any) -> None:
    for cost in ("bytes", "vectors"):
        Select(page.find_element(By.ID, "cost")).select_by_value(cost)
        shown = page.find_elements(By.CSS_SELECTOR, ".chart:not([hidden])")
        assert [one.get_attribute("data-name") for one in shown] == [cost]
        budget = float(page.find_element(By.ID, "budget").get_attribute("value"))
        row = cheapest(report[1], cost, budget)
        assert f"{row['method']}, {row['vectors']:,.0f} vectors" in choice(page)


def test_hovering_tells_about_a_point(page: Any) -> None:
    point = page.find_elements(By.CSS_SELECTOR, ".chart:not([hidden]) .point .mark")[2]
    ActionChains(page).move_to_element(point).perform()
    tip = page.find_element(By.ID, "tip")
    assert tip.is_displayed()
    assert "score" in tip.text
    ActionChains(page).move_to_element(page.find_element(By.TAG_NAME, "h1")).perform()
    assert not tip.is_displayed()


def test_the_chart_is_read_by_keyboard(page: Any) -> None:
    points = page.find_elements(By.CSS_SELECTOR, ".chart:not([hidden]) .point")
    assert [p.get_attribute("tabindex") for p in points].count("0") == 1
    page.find_element(By.ID, "budget").send_keys(Keys.TAB)
    seen = []
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.END, Keys.HOME):
        active = page.switch_to.active_element
        assert active.get_attribute("class").startswith("point")
        assert page.find_element(By.ID, "tip").text == active.get_attribute("aria-label")
        seen.append(active.get_attribute("aria-label"))
        active.send_keys(key)
    assert seen[0] == points[0].get_attribute("aria-label")
    assert seen[1] == seen[3]
    assert seen[4] == points[-1].get_attribute("aria-label")


@pytest.mark.parametrize("width", [1200, 500])
def test_nothing_is_wider_than_the_window(page: Any, width: int) -> None:
    page.set_window_size(width, 900)
    assert page.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")


def test_it_prints_on_two_pages(page: Any) -> None:
    pdf = base64.b64decode(page.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"])
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 2
