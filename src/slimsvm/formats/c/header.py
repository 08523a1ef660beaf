"""The header file: comment, tables, functions, labels and self-test."""

from __future__ import annotations

import re
from string import Template
from typing import Any

import numpy as np

from slimsvm._record import FloatArray
from slimsvm._versions import __version__
from slimsvm.answers import Classes, Value
from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats.c import integers, reals, words
from slimsvm.formats.c.fixed import Fixed
from slimsvm.formats.c.loss import class_places, in_float32
from slimsvm.formats.c.raw_rows import RawRows
from slimsvm.formats.c.source import Source
from slimsvm.heads import StagedHead
from slimsvm.machine import KernelMachine
from slimsvm.tables import Form, Table, TableType

AVR_READS = {
    "int8": "((int8_t)pgm_read_byte(a))",
    "uint8": "pgm_read_byte(a)",
    "int16": "((int16_t)pgm_read_word(a))",
    "uint16": "pgm_read_word(a)",
    "int32": "((int32_t)pgm_read_dword(a))",
    "uint32": "pgm_read_dword(a)",
    "float32": "pgm_read_float(a)",
    "float64": "pgm_read_float(a)",  # a double has 32 bits on AVR
}
N_TESTS = 4  # rows of the self-test
CHANCE_TOLERANCE = 0.01

LABEL = """
/* the label of a class */
static inline ${type}m_label(int place) {
  static const $element labels[] = {
$labels
  };
  return labels[place];
}
"""

SELF_TEST = """
#ifdef SLIMSVM_SELF_TEST
/* the number of results that differ from the results at export */
static int m_self_test(void) {
  static const m_input rows[$n][M_N_FEATURES] = {
$rows
  };
  static const m_score expected[$n][M_N_SCORES] = {
$expected
  };
$more  int wrong = 0;
  size_t i, c;
  for (i = 0; i < $n; ++i) {
    m_score scores[M_N_SCORES];
    m_scores(rows[i], scores);
    for (c = 0; c < M_N_SCORES; ++c) {
      const m_score off = scores[c] - expected[i][c];
      wrong += !(off <= $tolerance && off >= -$tolerance);
    }
$checks  }
  return wrong;
}
#ifndef SLIMSVM_NO_MAIN
int main(void) { return m_self_test() != 0; }
#endif
#endif
"""


class Header:
    """Writes the header of one machine."""

    def __init__(
        self,
        form: Form,
        kind: TableType,
        tables: dict[str, Table],
        fixed: Fixed | None,
        prefix: str,
        raw: RawRows | None = None,
    ) -> None:
        self.form, self.kind, self.tables, self.fixed, self.prefix, self.raw = form, kind, tables, fixed, prefix, raw
        self.machine = form.machine
        self.source = Source(form, kind, tables, fixed)

    def text(self, comment: str, rows: FloatArray) -> str:
        """The text of the file; the self-test uses some of `rows`."""
        parts = [
            comment,
            f"#ifndef M_H\n#define M_H\n\n#include <stddef.h>\n#include <stdint.h>\n{self._math()}",
            self._flash(),
            (reals if self.fixed is None else integers).TYPES.strip("\n") + "\n",
            "".join(f"#define M_{name} {value}\n" for name, value in self.source.constants().items()),
            "\n".join(words.table(table) for table in self.tables.values()),
            self.source.functions(),
            *self._labels(),
            *self._conversions(),
            *([] if self.raw is None else [self.raw.text()]),
            self._self_test(rows),
            "#endif\n",
        ]
        text = "\n".join(part.lstrip("\n") for part in parts)
        text = text.replace("$real", "float" if self.kind == "float32" else "double")
        text = re.sub(r"`([^`]*)`", lambda found: words.number(float(found[1]), self.kind), text)
        text = re.sub(r"\bm_(?=\w)", f"{self.prefix}_", text)
        return re.sub(r"\bM_(?=\w)", f"{self.prefix.upper()}_", text)

    def _math(self) -> str:
        return "#include <math.h>\n" if self.raw is not None and self.raw.needs_math else ""

    def _flash(self) -> str:
        used = sorted({table.dtype.name for table in self.tables.values()})
        avr = "".join(f"#define M_READ_{name.upper()}(a) {AVR_READS[name]}\n" for name in used)
        plain = "".join(f"#define M_READ_{name.upper()}(a) (*(a))\n" for name in used)
        return (
            "/* tables stay in flash memory, which small AVR boards read with special instructions */\n"
            f"#ifdef __AVR__\n#include <avr/pgmspace.h>\n#define M_FLASH PROGMEM\n{avr}"
            f"#else\n#define M_FLASH\n{plain}#endif\n"
        )

    def _labels(self) -> list[str]:
        if not isinstance(self.machine.answer, Classes):
            return []
        labels = self.machine.classes.tolist()
        if all(isinstance(label, (bool, int)) for label in labels):
            kind = "long" if max(abs(int(label)) for label in labels) < 2**31 else "long long"
            items = [words.integer(int(label)) for label in labels]
        elif all(isinstance(label, float) for label in labels):
            kind, items = "double", [words.number(label, "float64") for label in labels]
        else:
            kind, items = "const char *", [words.string(str(label)) for label in labels]
        element = "char *const" if kind.endswith("*") else kind
        listing = "    " + ",\n    ".join(items)
        kind = kind if kind.endswith("*") else f"{kind} "
        return [_filled(LABEL, type=kind, element=element, labels=listing)]

    def _conversions(self) -> list[str]:
        if self.fixed is None:
            return []
        unit = repr(2.0 ** -self.fixed.constants["score_bits"])
        feature = "m_place(feature)" if self.form.skips and "input_bits" in self.tables else "feature"
        return [_filled(integers.QUANTISE, unit=unit, feature=feature)]

    def _self_test(self, rows: FloatArray) -> str:
        inputs, scores, tolerance = self._expected(rows)
        one = {"rows": _matrix(inputs, self.kind), "expected": _matrix(scores, self.kind)}
        real_scores = scores if self.fixed is None else self.fixed.real(scores)
        more, checks = "", ""
        if not isinstance(self.machine.answer, Value):
            answers = class_places(self.machine, self.machine._answers(real_scores)).tolist()
            more += f"  static const int answers[{len(scores)}] = {{{', '.join(map(str, answers))}}};\n"
            checks += "    wrong += m_predict(rows[i]) != answers[i];\n"
        if self.machine.calibration is not None:
            chances = self.machine._probabilities(real_scores)
            unit = "M_ONE" if self.fixed is None else "(double)M_ONE"
            listed = _matrix(chances, "float64")
            more += f"  static const double chances[{len(scores)}][M_N_CLASSES] = {{\n{listed}\n  }};\n"
            more += "  m_fraction p[M_N_CLASSES];\n"
            checks += (
                "    m_probabilities(rows[i], p);\n    for (c = 0; c < M_N_CLASSES; ++c) {\n"
                f"      const double off = (double)p[c] / {unit} - chances[i][c];\n"
                f"      wrong += !(off <= {CHANCE_TOLERANCE} && off >= -{CHANCE_TOLERANCE});\n    }}\n"
            )
        return _filled(SELF_TEST, n=len(scores), tolerance=tolerance, more=more, checks=checks, **one)

    def _expected(self, rows: FloatArray) -> tuple[Any, Any, str]:
        """Rows whose prediction no rounding changes, as C reads them, their scores, and the tolerance of the scores."""
        if self.fixed is not None:
            integers = self.fixed.quantise(rows[_spread(np.arange(len(rows)))])
            return integers, self.fixed.scores(integers)[0], "0"
        inputs: FloatArray = in_float32(rows) if self.kind == "float32" else rows
        try:
            scores = self.machine.scores(inputs, precision="float64")
        except ValueError as error:  # scores that overflow cannot be tested
            raise UnsupportedExportError(str(error)) from error
        allowed = self._allowed(inputs)
        chosen = _spread(self._clear(inputs, scores, allowed))
        return inputs[chosen], scores[chosen], f"`{allowed!r}`"

    def _allowed(self, inputs: FloatArray) -> float:
        """The tolerance of scores: 1e-9 or 1e-5 times Σ|coef| times the largest input of the head."""
        mapped = inputs if self.form.input_map is None else self.form.input_map.apply(self.form.read(inputs))
        K = np.abs(self.machine._plain._inputs(mapped)).max(initial=1.0)
        size = np.abs(self.machine.head.coef).sum() * K + np.abs(self.machine.head.intercept).sum()
        return float(f"{max(size, 1e-30) * (1e-5 if self.kind == 'float32' else 1e-9):.2g}")

    def _clear(self, inputs: FloatArray, scores: FloatArray, allowed: float) -> Any:
        """The rows whose prediction stays the same if any score or threshold changes by ten times the tolerance."""
        clear = np.ones(len(inputs), dtype=bool)
        if isinstance(self.machine.answer, Value):
            return np.arange(len(inputs))
        answers = self.machine._answers(scores)
        for c in range(scores.shape[1]):
            for sign in (-10 * allowed, 10 * allowed):
                moved = scores + sign * (np.arange(scores.shape[1]) == c)
                clear &= self.machine._answers(moved) == answers
        head = self.machine.head
        if isinstance(head, StagedHead):
            counts = self.machine.kernel_evaluations(inputs, precision="float64")
            wider = type(self.machine)(
                self.machine.kernel,
                self.machine.points,
                head.with_margins(np.full(head.n_stages - 1, 10 * allowed)),
                self.machine.answer,
                self.machine.gammas,
                self.machine.input_map,
            )
            clear &= wider.kernel_evaluations(inputs, precision="float64") == counts
        return np.flatnonzero(clear)


def _spread(places: Any) -> Any:
    """A few of the positions, spread evenly; the first row if there are none."""
    return places[np.unique(np.linspace(0, len(places) - 1, N_TESTS).astype(int))] if len(places) else np.array([0])


def _matrix(values: Any, kind: str) -> str:
    text = (lambda v: words.number(v, kind)) if np.asarray(values).dtype.kind == "f" else (lambda v: str(int(v)))
    return ",\n".join("    {" + words.listing(map(text, row)).strip() + "}" for row in values)


def _filled(text: str, **given: Any) -> str:
    return Template(text).safe_substitute(given)


def comment(name: str, machine: KernelMachine, facts: list[tuple[str, str]]) -> str:
    """The comment at the top of the file: what it is, its size, its cost, and the version of slimsvm."""
    made = f"made by slimsvm {words.plain(__version__)}, do not edit"
    lines = [f"{words.plain(name)}: a kernel machine in C99, {made}", ""]
    facts = [*facts, ("record", machine.digest())]
    lines += [f"  {title:<10} {words.plain(text)}" for title, text in facts]
    if machine.feature_names is not None:
        lines += ["", "  features, in order:", *(f"    {words.plain(str(n))}" for n in machine.feature_names)]
    return "/* " + "\n".join(f"   {line}".rstrip() for line in lines).lstrip() + "\n*/\n"
