"""The pages of examples/browser in Chromium: digits of MNIST, and points in the plane."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from oracles.benchmark_data import need_data
from shared_data import load

pytest.importorskip("selenium")
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

pytestmark = pytest.mark.browser

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "browser"
MOST_BYTES = 64_000
DTYPES = {"Float64": "<f8", "Float32": "<f4", "Int16": "<i2", "Uint16": "<u2", "Int8": "i1", "Uint8": "u1"}


def tables(text: str) -> dict[str, NDArray[Any]]:
    """The tables of a module, decoded here: integers times steps plus offsets."""

    def decoded(call: str) -> NDArray[Any]:
        kind, data, rest = re.fullmatch(r'table\("(\w+)", "([^"]*)"(.*)\)', call).groups()  # type: ignore[union-attr]
        values = np.frombuffer(base64.b64decode(data), DTYPES[kind]).astype(float)
        further = [decoded(one) for one in re.findall(r'table\("\w+", "[^"]*"\)', rest)]
        for place, numbers in enumerate(further):
            grid = values.reshape(-1, len(numbers))
            values = (grid * numbers if place == 0 else grid + numbers).ravel()
        return values

    return {name: decoded(call) for name, call in re.findall(r"^const (\w+) = (table\(.*\));$", text, re.MULTILINE)}


def python_scores(text: str, X: NDArray[Any]) -> NDArray[Any]:
    """What the module should compute for rows X, from its tables alone."""
    t = tables(text)
    used = np.array(re.search(r"const USED = \[(.*?)\];", text).group(1).split(","), dtype=int)  # type: ignore[union-attr]
    p, m, s = (int(re.search(rf"const {name} = (\d+);", text).group(1)) for name in "PMS")  # type: ignore[union-attr]
    gamma = float(re.search(r"Math\.exp\(-([\d.e-]+) \* t\)", text).group(1))  # type: ignore[union-attr]
    rows = X[:, used] - t.get("map_shift", np.zeros(len(used)))
    mapped = rows @ t["map_scale"].reshape(len(used), p) + t.get("map_offset", np.zeros(p))
    distance = np.square(mapped[:, None] - t["points"].reshape(m, p)).sum(axis=2)
    return np.asarray(np.exp(-gamma * distance) @ t["coef"].reshape(m, s) + t["intercept"])


def test_digits_are_recognised_as_in_python(browser: Any, served: Callable[[Path], str]) -> None:
    need_data()
    data = load("mnist")
    rows = [int(np.flatnonzero(data["y_test"] == digit)[3]) for digit in range(10)]
    images = data["X_test"][rows].reshape(10, -1) / 255
    text = (FOLDER / "digit.mjs").read_text(encoding="utf-8")
    assert len(text.encode()) <= MOST_BYTES
    browser.set_window_size(1200, 900)
    browser.get(served(FOLDER) + "/digit.html")
    WebDriverWait(browser, 20).until(lambda b: b.find_element(By.ID, "size").text != "–")
    right = 0
    for digit, image in enumerate(images):
        found = browser.execute_script(
            "digitPage.paint(arguments[0]); return [digitPage.pixels, digitPage.answer, digitPage.scores]",
            image.tolist(),
        )
        pixels, answer, scores = np.array(found[0]), int(found[1]), np.array(found[2])
        wanted = python_scores(text, pixels[None])[0]
        np.testing.assert_allclose(scores, wanted, rtol=0, atol=1e-9)
        assert answer == int(wanted.argmax())
        assert browser.find_element(By.ID, "answer").text == str(answer)
        right += answer == digit
    assert right >= 9
    assert len(browser.find_elements(By.CSS_SELECTOR, "#loud figure")) == 10
    assert "µs per answer" in browser.find_element(By.ID, "time").text


def test_a_stroke_is_a_one(browser: Any, served: Callable[[Path], str]) -> None:
    browser.get(served(FOLDER) + "/digit.html")
    canvas = browser.find_element(By.ID, "canvas")
    WebDriverWait(browser, 20).until(lambda b: b.find_element(By.ID, "size").text != "–")
    stroke = ActionChains(browser).move_to_element_with_offset(canvas, 0, -90).click_and_hold()
    for _ in range(6):
        stroke = stroke.move_by_offset(0, 30)
    stroke.release().perform()
    WebDriverWait(browser, 10).until(lambda b: b.find_element(By.ID, "answer").text == "1")
    browser.find_element(By.ID, "clear").click()
    assert browser.find_element(By.ID, "answer").text == "–"


def test_points_in_the_plane(browser: Any, served: Callable[[Path], str]) -> None:
    browser.set_window_size(1200, 900)
    browser.get(served(FOLDER) + "/plane.html")
    ready = WebDriverWait(browser, 20).until
    for name in ("moons", "rings", "clouds"):
        Select(browser.find_element(By.ID, "set")).select_by_visible_text(name)
        Select(browser.find_element(By.ID, "vectors")).select_by_visible_text("25")
        ready(lambda b: b.execute_script("return planePage.ready && planePage.state.models.small.model.nVectors <= 25"))
        figures = browser.find_element(By.ID, "figures").text
        share = float(re.search(r"Same answer on those points ([\d.]+) %", figures).group(1))  # type: ignore[union-attr]
        assert share > 94
    canvas = browser.find_element(By.ID, "small")
    canvas.click()
    canvas.send_keys(Keys.ARROW_UP, Keys.ARROW_LEFT, Keys.ENTER)
    assert browser.execute_script("return planePage.state.points.length") == 2
    assert "Point 2: the SVC says class" in browser.find_element(By.ID, "said").text
    browser.find_element(By.ID, "clear").click()
    assert browser.execute_script("return planePage.state.points.length") == 0
