"""Drawing: SVG text with escaped labels, axes with round ticks, and small PNG images inside it."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

MARGIN = 58, 14, 28, 44  # left, right, top, bottom: room for the labels of the axes


class Html:
    """Text that is HTML already, which templates do not escape."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __html__(self) -> str:
        return self.text


def element(name: str, content: str = "", **attributes: Any) -> str:
    """An element; attributes are escaped, `class_` and `for_` lose their underscore, other underscores are hyphens."""
    pairs = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    text = "".join(f' {key}="{escape(_short(value))}"' for key, value in pairs)
    return f"<{name}{text}>{content}</{name}>" if content else f"<{name}{text}/>"


def label(text: str, x: float, y: float, **attributes: Any) -> str:
    """A text element with escaped text."""
    return element("text", escape(text), x=x, y=y, **attributes)


def _short(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class Axis:
    """A linear or logarithmic scale from numbers to pixels."""

    low: float
    high: float
    start: float
    stop: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (np.log(v) if self.logarithmic else v for v in (self.low, self.high, value))
        return float(self.start + (at - low) / ((high - low) or 1.0) * (self.stop - self.start))

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers on the axis."""
        if self.logarithmic:
            powers = 10.0 ** np.arange(np.floor(np.log10(self.low)), np.ceil(np.log10(self.high)) + 1)
            for steps in ((1, 2, 5), (1, 3), (1,)):
                found = [p * s for p in powers for s in steps if self.low <= p * s <= self.high]
                if len(found) <= most + 1:
                    break
            return found or [self.low, self.high]
        span = (self.high - self.low) or 1.0
        power = 10.0 ** np.floor(np.log10(span / most))
        step = next(power * s for s in (1, 2, 5, 10) if span / (power * s) <= most)
        return [float(v) for v in np.arange(np.ceil(self.low / step) * step, self.high + step * 1e-9, step)]


def axis_of(values: Any, start: float, stop: float, logarithmic: bool = False, room: float = 0.05) -> Axis:
    """An axis around the values."""
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known) & ((known > 0) | (not logarithmic))]
    low, high = (float(known.min()), float(known.max())) if len(known) else (1.0, 10.0)
    if logarithmic:
        wide = max((high / low) ** room, 1.15)
        return Axis(low / wide, high * wide, start, stop, True)
    wide = room * (high - low) or 0.01 * max(abs(high), 1.0)
    return Axis(low - wide, high + wide, start, stop)


def chart(body: str, width: int, height: int, name: str, **attributes: Any) -> Html:
    """An SVG image with a name for screen readers."""
    content = f"<title>{escape(name)}</title>{body}"
    return Html(element("svg", content, viewBox=f"0 0 {width} {height}", role="img", aria_label=name, **attributes))


def frame(x: Axis, y: Axis, x_label: str, y_label: str, form: str = "{:g}", x_form: str = "") -> str:
    """Grid lines, ticks and labels of two axes."""
    parts = []
    for value in y.ticks():
        parts.append(element("line", x1=x.start, x2=x.stop, y1=y(value), y2=y(value), class_="grid"))
        parts.append(label(form.format(value), x.start - 6, y(value) + 4, class_="tick end"))
    for value in x.ticks():
        parts.append(element("line", x1=x(value), x2=x(value), y1=y.start, y2=y.start + 4, class_="axis"))
        parts.append(
            label(x_form.format(value) if x_form else short(value), x(value), y.start + 17, class_="tick middle")
        )
    parts.append(element("line", x1=x.start, x2=x.stop, y1=y.start, y2=y.start, class_="axis"))
    parts.append(label(x_label, (x.start + x.stop) / 2, y.start + 36, class_="name middle"))
    parts.append(label(y_label, x.start - MARGIN[0] + 12, y.stop - 14, class_="name"))
    return "".join(parts)


def short(value: float) -> str:
    """A number in few letters: 0.05, 20, 5000, 20k, 3M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return f"{value:g}"


def png(pixels: NDArray[np.uint8]) -> str:
    """A data address of a PNG image of grey values (h, w) or colours (h, w, 3) or (h, w, 4)."""
    height, width = pixels.shape[:2]
    kind = {2: 0, 3: 2 if pixels.shape[-1] == 3 else 6}[pixels.ndim]
    rows = np.ascontiguousarray(pixels).reshape(height, -1)
    data = zlib.compress(np.hstack([np.zeros((height, 1), np.uint8), rows]).tobytes(), 9)
    parts = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)),
        (b"IDAT", data),
        (b"IEND", b""),
    )
    chunks = (struct.pack(">I", len(c)) + t + c + struct.pack(">I", zlib.crc32(t + c)) for t, c in parts)
    return "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()


def grey(images: NDArray[Any], signed: bool = False) -> NDArray[np.uint8]:
    """Images (n, h, w) as grey values, each over its own range; signed ones have zero in the middle."""
    low = images.min(axis=(1, 2), keepdims=True)
    high = images.max(axis=(1, 2), keepdims=True)
    if signed:
        high = np.maximum(np.abs(low), np.abs(high))
        low = -high
    span = np.where(high > low, high - low, 1.0)
    return np.asarray(np.rint((images - low) / span * 255), dtype=np.uint8)
