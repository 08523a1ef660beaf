"""`write_report`: the page about a compressed model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import _num_samples

from slimsvm._files import write_whole
from slimsvm._unwrap import compressed_model
from slimsvm._versions import versions
from slimsvm.html_report.answers import answers_section, disagreement_section
from slimsvm.html_report.costs import cost_rows, has_parent
from slimsvm.html_report.findings import Findings
from slimsvm.html_report.page_text import page_text
from slimsvm.html_report.pictures import metric_section, vectors_section
from slimsvm.html_report.promise import promise_section
from slimsvm.html_report.reliability import reliability_section
from slimsvm.html_report.trade_off import legend_mark, trade_off_section
from slimsvm.machine import KernelMachine
from slimsvm.plots.images import image_shape as checked_shape
from slimsvm.plots.subject import subject_of

SECTIONS = {
    "promise": "Promise",
    "costs": "Before and after",
    "trade_off": "Trade-off",
    "answers": "Predictions",
    "disagreement": "Disagreements",
    "reliability": "Calibration",
    "metric": "Features",
    "vectors": "Vectors",
    "origin": "Origin",
}
TASKS = {"classes": "classification", "value": "regression", "inlier": "outlier detection"}


def write_report(
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    parent: Any = None,
    frontier: Any = None,
    title: str = "Compressed model",
    image_shape: tuple[int, int] | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Path:
    """Write one self-contained HTML page about a compressed model, and return its path.

    The page has pictures and a script inside it and loads nothing. Sections without their source are left out.

    Parameters
    ----------
    model : fitted slimsvm estimator, Pipeline that ends in one, or KernelMachine
        The compressed model. Its `report_` tells what was promised and how sure that is.
    X, y : (n, d) and (n,), or None
        Data that neither model was trained on, in the form `predict` accepts, and their labels or values. Without
        them, the page has no accuracy, confusion matrices, times and calibration.
    path : str or path
        The HTML file to write.
    parent : fitted estimator, default=None
        The model before compression: accuracy, times and confusion matrices are shown beside it, and the rows on which
        the two disagree.
    frontier : Frontier, default=None
        The result of `slimsvm.frontier`: a chart with a slider for the loss budget.
    title : str, default="Compressed model"
        The heading of the page.
    image_shape : (height, width), default=None
        The shape of an image if the features are pixels: vectors are shown as images.
    notes : dict, default=None
        Further lines about how the model was made, such as `{"seed": 0, "data": "sensors, May"}`.

    Returns
    -------
    pathlib.Path
        The path of the page.
    """
    found = _findings(model, X, y, parent, frontier, image_shape, notes)
    target = Path(path)
    write_whole(target, page_text(_content(found, title)).encode("utf-8"))
    return target


def _findings(
    model: Any, X: Any, y: Any, parent: Any, frontier: Any, image_shape: Any, notes: Mapping[str, Any] | None
) -> Findings:
    subject = subject_of(model, "write_report")
    if y is not None:
        if X is None:
            raise ValueError("y of write_report holds the labels of X. Pass X too.")
        y = np.asarray(y)
        if y.ndim != 1 or len(y) != _num_samples(X):
            raise ValueError(
                f"y of write_report must have one label for each of the {_num_samples(X)} rows of X. Got {y.shape}."
            )
    if X is not None and not _num_samples(X):
        raise ValueError("X of write_report must have at least one row.")
    if parent is not None and not hasattr(parent, "predict"):
        raise TypeError(f"parent of write_report must be a fitted model with predict. Got {type(parent).__name__}.")
    if frontier is not None and not hasattr(frontier, "records"):
        raise TypeError(
            f"frontier of write_report must be what slimsvm.frontier returns. Got {type(frontier).__name__}."
        )
    if image_shape is not None:
        d = subject.machine.n_features if not subject.steps or X is None else int(np.shape(X)[1])
        image_shape = checked_shape(image_shape, d, "image_shape", "write_report")[:2]
    X = X if X is None or hasattr(X, "shape") else np.asarray(X)
    return Findings(subject, X, y, parent, frontier, image_shape, dict(notes or {}))


def _content(found: Findings, title: str) -> dict[str, Any]:
    costs = cost_rows(found)
    content = {
        "title": title,
        "task": TASKS[found.task],
        "machine": repr(found.machine),
        "kernel": _kernel_in_words(found.machine),
        "promise": promise_section(found),
        "costs": costs,
        "has_parent": has_parent(costs),
        "trade_off": trade_off_section(found),
        "legend_mark": legend_mark,
        "answers": answers_section(found),
        "disagreement": disagreement_section(found),
        "reliability": reliability_section(found),
        "metric": metric_section(found),
        "vectors": vectors_section(found),
        "origin": _origin(found),
    }
    return content | {"sections": [(key, name) for key, name in SECTIONS.items() if content[key]]}


def _kernel_in_words(machine: KernelMachine) -> str:
    """The name of the kernel and its width."""
    width = "" if machine.kernel.name == "linear" or machine.gammas is not None else f", γ = {machine.kernel.gamma:.3g}"
    return f"{machine.kernel.name} kernel{width}"


def _origin(found: Findings) -> dict[str, str]:
    """How and with what the model was made."""
    seed = getattr(compressed_model(found.subject.model), "random_state", None)
    notes = {str(name): str(value) for name, value in found.notes.items()}
    own = {"seed": str(seed)} if isinstance(seed, (int, np.integer)) else {}
    return {"digest": found.machine.digest(), **own, **notes, **versions()}
