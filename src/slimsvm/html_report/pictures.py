"""Sections: the scales of the features, and the vectors as images or in the plane."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slimsvm._record import FloatArray, is_sparse
from slimsvm.html_report.findings import Findings
from slimsvm.html_report.svg import MARGIN, Html, axis_of, chart, element, frame, grey, label, png
from slimsvm.plots.subject import strengths, vector_classes

MOST_BARS = 16
MOST_IMAGES = 48
GRID = 90  # pixels on a side of the picture of decisions
SHOWN_POINTS = 300
PALETTE: tuple[tuple[int, int, int], ...] = (
    *((31, 111, 180), (214, 111, 35), (44, 145, 84), (190, 54, 80), (126, 95, 178), (128, 90, 60)),
    *((205, 100, 170), (110, 110, 110), (150, 150, 30), (30, 150, 165)),
)


def metric_section(found: Findings) -> dict[str, Any] | None:
    """Bars of the features' weights, and images of a projection's rows; None without an input map."""
    chart_of = found.machine.input_map
    if chart_of is None or found.machine.preparation is not None:
        return None
    scale = np.asarray(chart_of.scale)
    weights, spread = (
        np.abs(scale) if scale.ndim == 1 else np.linalg.norm(scale, axis=0),
        _spread(found, len(chart_of.shift)),
    )
    if spread is not None:
        weights = weights * spread
    names = found.machine.feature_names or [f"feature {i}" for i in range(len(weights))]
    images = []
    if scale.ndim == 2 and found.image_shape is not None and np.prod(found.image_shape) == scale.shape[1]:
        order = np.argsort(-np.linalg.norm(scale, axis=1), kind="stable")[:MOST_IMAGES]
        images = _images(scale[order].reshape(-1, *found.image_shape), [f"row {i}" for i in order], signed=True)
    return {
        "chart": None if images else _bars(weights, list(names)),
        "images": images,
        "is_projection": scale.ndim == 2,
        "n_rows": len(scale) if scale.ndim == 2 else None,
        "n_used": len(chart_of.used),
        "n_features": len(weights),
        "weighted": spread is not None,
    }


def _spread(found: Findings, d: int) -> FloatArray | None:
    """The standard deviation of each feature of the data; None if they are not plain numbers."""
    if (
        found.subject.steps
        or not isinstance(found.X, np.ndarray)
        or found.X.shape[1:] != (d,)
        or found.X.dtype.kind != "f"
    ):
        return None
    with np.errstate(invalid="ignore"):
        spread = found.X.std(axis=0)
    return np.asarray(np.nan_to_num(spread), dtype=float)


def _bars(weights: FloatArray, names: list[str]) -> Html:
    order = np.argsort(-weights, kind="stable")[:MOST_BARS]
    most, height = float(weights.max(initial=0.0)) or 1.0, 22
    body = ""
    for row, i in enumerate(order):
        y = 4 + row * height
        width = 360 * float(weights[i]) / most
        body += label(names[i][:22], 150, y + 14, class_="tick end")
        body += element(
            "rect",
            f"<title>{escape(names[i])}: {weights[i]:.3g}</title>",
            x=158,
            y=y + 2,
            width=width,
            height=height - 6,
            class_="bar c0",
        )
        body += label(f"{weights[i]:.3g}", 164 + width, y + 14, class_="tick")
    return chart(body, 580, 8 + height * len(order), "Weights of the features, the largest first")


def vectors_section(found: Findings) -> dict[str, Any] | None:
    """The vectors as images, in the plane for two features, or None."""
    vectors = None if found.machine.preparation is not None else found.subject.vectors()
    if vectors is None or not len(vectors):
        return None
    if found.image_shape is not None and np.prod(found.image_shape) == vectors.shape[1]:
        size = np.abs(strengths(found.machine)).max(axis=1)
        order = np.argsort(-size, kind="stable")[:MOST_IMAGES]
        titles = _titles(found, order)
        images = _images(vectors[order].reshape(-1, *found.image_shape), titles)
        return {"images": images, "chart": None, "n": len(vectors)}
    if vectors.shape[1] == 2:
        return {"images": [], "chart": _plane(found, vectors), "n": len(vectors)}
    return None


def _titles(found: Findings, order: NDArray[Any]) -> list[str]:
    classes, coef = vector_classes(found.machine), strengths(found.machine)
    if classes is None:
        return [f"{coef[i, 0]:+.2g}" for i in order]
    labels = found.labels
    return [str(labels[int(classes[i])]) for i in order]


def _images(images: FloatArray, titles: list[str], signed: bool = False) -> list[Html]:
    drawn = grey(np.asarray(images, dtype=float), signed)
    return [
        Html(
            f'<figure class="tile"><img src="{png(image)}" alt="{escape(title)}">'
            f"<figcaption>{escape(title)}</figcaption></figure>"
        )
        for image, title in zip(drawn, titles, strict=True)
    ]


def _plane(found: Findings, vectors: FloatArray) -> Html:
    """The decisions as coloured areas, some rows as dots, the vectors as rings."""
    X = None
    if found.n_rows:
        X = np.asarray(found.X.toarray() if is_sparse(found.X) else found.X, dtype=float)
        X = X[np.unique(np.linspace(0, len(X) - 1, min(len(X), SHOWN_POINTS)).astype(int))]
    every = vectors if X is None else np.vstack([vectors, X])
    width, height = 560, 400
    left, right, top, bottom = MARGIN
    x, y = axis_of(every[:, 0], left, width - right), axis_of(every[:, 1], height - bottom, top)
    a, b = np.linspace(x.low, x.high, GRID), np.linspace(y.high, y.low, GRID)
    grid = np.stack([m.ravel() for m in np.meshgrid(a, b)], axis=1)
    place: dict[str, Any] = {"x": x.start, "y": top, "width": x.stop - x.start, "height": y.start - top}
    place |= {"preserveAspectRatio": "none", "href": png(_areas(found, grid))}
    body = element("image", **place)
    names = found.machine.feature_names or ("feature 0", "feature 1")
    body += frame(x, y, str(names[0]), str(names[1]))
    if X is not None:
        places = _places(found, np.asarray(found.subject.predict(X)))
        body += "".join(
            element("circle", cx=x(u), cy=y(v), r=2, class_=f"dot c{c}") for (u, v), c in zip(X, places, strict=True)
        )
    body += "".join(element("circle", cx=x(u), cy=y(v), r=7, class_="ring") for u, v in vectors)
    return chart(body, width, height, f"{len(vectors)} vectors (rings) in the plane, with the decisions of the model")


def _places(found: Findings, answers: NDArray[Any]) -> list[int]:
    labels = [str(label_) for label_ in found.labels]
    return [labels.index(str(one)) % len(PALETTE) if str(one) in labels else 0 for one in answers]


def _areas(found: Findings, grid: FloatArray) -> NDArray[np.uint8]:
    if found.task == "value":
        values = np.asarray(found.subject.predict(grid), dtype=float).reshape(GRID, GRID)
        shade = grey(values[None])[0]
        return np.stack([shade, shade, shade, np.full_like(shade, 120)], axis=-1)
    colours = np.array([(*colour, 70) for colour in PALETTE], dtype=np.uint8)
    return colours[_places(found, np.asarray(found.subject.predict(grid)))].reshape(GRID, GRID, 4)
