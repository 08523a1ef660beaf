"""C text of a preparation: the struct of a raw row, and the function that turns it into the inputs of the machine.

Categories of text are enums, numbers are doubles with NaN for missing ones. Names of columns and categories become
identifiers of ASCII letters, digits and underscores, all different; their text appears in escaped strings only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from slimsvm.exceptions import UnsupportedExportError
from slimsvm.formats.c import words
from slimsvm.preparation import (
    ZERO,
    Above,
    Clip,
    Fill,
    Function,
    Lookup,
    Missing,
    Part,
    Power,
    Preparation,
    Quantiles,
    Scale,
    Step,
)
from slimsvm.tables import Table, TableType, is_fixed, preparation_tables, reads_text, text_categories

LONGEST_NAME = 40
KEYWORDS = frozenset(
    [
        *("auto", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum", "extern"),
        *("float", "for", "goto", "if", "inline", "int", "long", "register", "restrict", "return", "short", "signed"),
        *("sizeof", "static", "struct", "switch", "typedef", "union", "unsigned", "void", "volatile", "while"),
        *("asm", "bool", "catch", "class", "delete", "explicit", "export", "false", "friend", "mutable", "namespace"),
        *("new", "operator", "private", "protected", "public", "template", "this", "throw", "true", "try", "typename"),
        *("typeid", "using", "virtual", "and", "or", "not", "xor", "row", "x", "v"),
        *("alignas", "alignof", "constexpr", "decltype", "noexcept", "nullptr", "static_assert", "thread_local"),
        *("typeof", "wchar_t", "complex", "imaginary"),
        *("linux", "unix", "i386", "errno", "assert", "stdin", "stdout", "stderr"),  # macros of compilers and headers
    ]
)
FUNCTIONS = {
    "abs": "fabs(v)",
    "arcsinh": "asinh(v)",
    "arctan": "atan(v)",
    "negative": "-v",
    "reciprocal": "1.0 / v",
    "square": "v * v",
}  # the others have the same name in math.h
PLAIN_FUNCTIONS = ("negative", "reciprocal", "square")

ENUM = """
typedef enum {
$members
} $type; /* $column */

/* the category of a text; a text that is none of the categories is unknown */
static inline $type ${type}_of(const char *text) {
  static const char *const names[] = {
$names
  };
  int i;
  for (i = 0; i < $n; ++i) {
    const char *a = names[i], *b = text;
    while (*a && *a == *b) ++a, ++b;
    if (*a == *b) return ($type)i;
  }
  return $unknown;
}
"""
PREPARE = """
/* The inputs of the machine for a raw row. The result is 0, or the number of a column, counted from 1, whose value the
   model has no rule for: a missing number, or a category that its encoder refuses. */
static int m_prepare(const m_row *row, m_input *x) {
  $locals
$body
  return 0;
}
"""
ENDS = """
/* the scores of a raw row; the result is that of m_prepare */
static inline int m_scores_of_row(const m_row *row, m_score *scores) {
  m_input x[M_N_FEATURES];
  const int refused = m_prepare(row, x);
  if (!refused) m_scores(x, scores);
  return refused;
}
"""
PREDICT = """
/* m_predict for a raw row; -1 if m_prepare refuses it */
static inline int m_predict_row(const m_row *row) {
  m_input x[M_N_FEATURES];
  return m_prepare(row, x) ? -1 : m_predict(x);
}
"""


@dataclass(frozen=True)
class RawRows:
    """Writes the C text of one preparation, for tables of some type."""

    preparation: Preparation
    kind: TableType
    predicts_class: bool

    @cached_property
    def tables(self) -> dict[str, Table]:
        """The tables of the look-ups and of the mixing, by name."""
        return {table.name: table for table in preparation_tables(self.preparation, self.kind)}

    @cached_property
    def _categories(self) -> dict[int, list[str]]:
        return text_categories(self.preparation)

    @cached_property
    def _fields(self) -> dict[int, str]:
        """The name of each column's field."""
        names, used = self.preparation.names, set[str]()
        return {
            column: identifier(f"column_{column}" if names is None else names[column], used)
            for column in self.preparation.columns_used
        }

    @property
    def needs_math(self) -> bool:
        """Whether a step needs math.h."""
        steps = [step for part in self.preparation.parts for step in part.steps]
        curved = (isinstance(step, Power) or _calls(step) for step in steps)
        return any(curved) or any(norm.kind == "l2" for norm in self.preparation.norms)

    def text(self) -> str:
        """The struct and the functions."""
        pieces = [*self._enums(), self._struct(), self._prepare(), ENDS]
        return "\n".join(piece.strip("\n") + "\n" for piece in (*pieces, *([PREDICT] if self.predicts_class else [])))

    def _enums(self) -> Iterator[str]:
        used = set[str]()
        for column, categories in self._categories.items():
            stem = f"M_CAT_{self._fields[column].upper()}"
            missing, unknown = (identifier(f"{stem}_{word}", used, upper=True) for word in ("missing", "unknown"))
            members = [identifier(f"{stem}_{category}", used, upper=True) for category in categories]
            yield _filled(
                ENUM,
                members="\n".join(f"  {name}," for name in (*members, missing)) + f"\n  {unknown}",
                type=self._type(column),
                column=words.plain(self._named(column)),
                names=",\n".join(f"    {words.string(category)}" for category in categories) or '    ""',
                n=len(categories),
                unknown=unknown,
            )

    def _type(self, column: int) -> str:
        return f"m_cat_{self._fields[column]}" if column in self._categories else "double"

    def _named(self, column: int) -> str:
        names = self.preparation.names
        return f"column {column}" if names is None else names[column]

    def _struct(self) -> str:
        lines = []
        for column, field in self._fields.items():
            note = words.plain(self._named(column)) + ("" if column in self._categories else "; NaN if missing")
            lines.append(f"  {self._type(column)} {field}; /* {note} */")
        return "/* a raw row */\ntypedef struct {\n" + "\n".join(lines) + "\n} m_row;\n"

    def _prepare(self) -> str:
        preparation = self.preparation
        buffered = preparation.mixing is not None or bool(preparation.norms)
        body, lookup = [], 0
        if preparation.lookups:
            body.append(f"for (i = 0; i < {preparation.width}; ++i) {self._set('i', '0', buffered)}")
        for part, place in preparation.placed():
            body.append(f"/* {words.plain(self._named(part.column))} */")
            if isinstance(part, Lookup):
                body += self._looked_up(part, lookup, place.start, buffered)
                lookup += 1
            else:
                body += [*self._number(part), f"if (v - v != 0) return {part.column + 1};"]
                body.append(self._set(str(place.start), "v", buffered))
        body += self._mixed(buffered)
        steps = any(not reads_text(part) for part in preparation.parts if isinstance(part, Lookup))
        needs_v = steps or bool(preparation.numeric)
        local = ["double v;"] if needs_v else []
        local += ["size_t i, code;", "int r;"] if preparation.lookups else ["size_t i;"] if buffered else []
        local += [f"double p[{preparation.width}];"] if buffered else []
        n = preparation.n_features
        local += [f"double q[{n}];"] if preparation.mixing is not None else []
        local += ["size_t k;"] if preparation.mixing is not None and not preparation.mixing.is_diagonal else []
        local += ["double size;"] if preparation.norms else []
        return _filled(PREPARE, locals="\n  ".join(local), body="\n".join(f"  {line}" for line in body))

    def _set(self, place: str, value: str, buffered: bool) -> str:
        """The statement that sets one number."""
        if buffered:
            return f"p[{place}] = {value};"
        if is_fixed(self.kind):
            return f"x[{place}] = m_quantise({value}, {place});"
        return f"x[{place}] = (m_input)({value});"

    def _number(self, part: Part) -> list[str]:
        """The statements that leave a column's number in v."""
        lines = [f"v = row->{self._fields[part.column]};"]
        return lines + [line for step in part.steps for line in _statements(step)]

    def _looked_up(self, part: Lookup, number: int, start: int, buffered: bool) -> list[str]:
        n = self.tables[f"row_of_{number}"].values.size - 2
        if reads_text(part):
            lines = [f"code = (size_t)row->{self._fields[part.column]};", f"if (code > {n + 1}) code = {n + 1};"]
        else:
            lines = self._number(part)
            if part.edges is not None:
                count = len(part.edges)
                lines.append("code = 0;")
                if count:
                    lines.append(f"while (code < {count} && M_KNOWN_{number}(code) <= v) ++code;")
            else:
                lines += [
                    f"for (code = 0; code < {n} && M_KNOWN_{number}(code) != v; ++code) {{}}" if n else "code = 0;",
                    f"if (code == {n}) code = {n + 1};",
                ]
            lines.append(f"if (v != v) code = {n};")
        lines += [f"r = M_ROW_OF_{number}(code);", f"if (r == -2) return {part.column + 1};"]
        if part.table is None:
            place = f"{start} + r" if start else "r"
            return [*lines, f"if (r >= 0) {self._set(f'(size_t)({place})', '1', buffered)}"]
        value = f"M_VALUE_OF_{number}((size_t)r * {part.width} + i)"
        each = f"for (i = 0; i < {part.width}; ++i) {self._set(f'{start} + i', value, buffered)}"
        return [*lines, f"if (r >= 0) {each}" if ZERO in (*part.rows, part.missing, part.unknown) else each]

    def _mixed(self, buffered: bool) -> list[str]:
        if not buffered:
            return []
        mixing, lines, name = self.preparation.mixing, [], "p"
        n, width = self.preparation.n_features, self.preparation.width
        if mixing is not None:
            name = "q"
            if mixing.is_diagonal:
                product = "(p[i] - M_MIXING_SHIFT(i)) * M_MIXING_SCALE(i) + M_MIXING_OFFSET(i)"
                lines.append(f"for (i = 0; i < {n}; ++i) q[i] = {product};")
            else:
                lines.append(f"for (k = 0; k < {n}; ++k) {{")
                lines.append("  q[k] = M_MIXING_OFFSET(k);")
                product = f"(p[i] - M_MIXING_SHIFT(i)) * M_MIXING_SCALE(k * {width} + i)"
                lines.append(f"  for (i = 0; i < {width}; ++i) q[k] += {product};")
                lines.append("}")
        for norm in self.preparation.norms:
            item, span = f"{name}[i]", f"for (i = {norm.start}; i < {norm.stop}; ++i)"
            size = f"({item} < 0 ? -{item} : {item})"
            term = {"l2": f"size += {item} * {item};", "l1": f"size += {size};"}
            lines += ["size = 0;", f"{span} {term.get(norm.kind, f'if ({size} > size) size = {size};')}"]
            lines += ["size = sqrt(size);"] if norm.kind == "l2" else []
            lines.append(f"if (size != 0) {span} {item} /= size;")
        given = f"{name}[i]"
        convert = f"m_quantise({given}, i)" if is_fixed(self.kind) else f"(m_input){given}"
        return [*lines, f"for (i = 0; i < {n}; ++i) x[i] = {convert};"]


def _calls(step: Step) -> bool:
    return isinstance(step, Function) and step.function not in PLAIN_FUNCTIONS


def _statements(step: Step) -> list[str]:
    """C statements that apply a step to v."""
    if isinstance(step, (Fill, Missing)):
        found = "v != v" if step.marker is None else f"v == {_real(step.marker)}"
        if isinstance(step, Missing):
            return [f"v = {found};"]
        return [f"if ({found}) v = {_real(step.value)};"]
    if isinstance(step, Scale):
        shifted = f"v - {_real(step.shift)}" if step.shift else "v"
        divided = f"({shifted}) / {_real(step.divisor)}" if step.divisor != 1 else shifted
        scaled = f"({divided}) * {_real(step.factor)}" if step.factor != 1 else divided
        return [f"v = {scaled} + {_real(step.offset)};" if step.offset else f"v = {scaled};"]
    if isinstance(step, Clip):
        lower, upper = _real(step.lower), _real(step.upper)
        return [f"v = v < {lower} ? {lower} : v > {upper} ? {upper} : v;"]
    if isinstance(step, Above):
        return [f"if (v == v) v = v > {_real(step.threshold)};"]
    if isinstance(step, Function):
        return [f"v = {FUNCTIONS.get(step.function, f'{step.function}(v)')};"]
    if isinstance(step, Power):
        return _power(step)
    assert isinstance(step, Quantiles)
    raise UnsupportedExportError(
        "The C export has no QuantileTransformer. Use another scaler in the pipeline, such as RobustScaler, or apply "
        "this one to the data."
    )


def _power(step: Power) -> list[str]:
    e = step.exponent
    if step.method == "box-cox":
        return ["v = log(v);" if abs(e) < 1e-19 else f"v = expm1({_real(e)} * log(v)) / {_real(e)};"]
    above = "log1p(v)" if abs(e) < 2e-16 else f"expm1({_real(e)} * log1p(v)) / {_real(e)}"
    f = 2.0 - e
    below = "-log1p(-v)" if abs(f) < 2e-16 else f"-expm1({_real(f)} * log1p(-v)) / {_real(f)}"
    return [f"v = v >= 0 ? {above} : {below};"]


def _real(value: float) -> str:
    text = words.number(value, "float64")
    return f"({text})" if text.startswith("-") else text


def identifier(text: str, used: set[str], upper: bool = False) -> str:
    """A C identifier for a text that is in no other's way; it is added to `used`."""
    stem = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[: 2 * LONGEST_NAME if upper else LONGEST_NAME].strip("_")
    stem = stem.upper() if upper else stem.lower()
    if not upper and (not stem[:1].isalpha() or stem in KEYWORDS or stem.startswith("m_")):
        stem = f"c_{stem}".rstrip("_")
    name, number = stem, 2
    while name in used:
        name, number = f"{stem}_{number}", number + 1
    used.add(name)
    return name


def _filled(text: str, **given: Any) -> str:
    """The text with `$name` and `${name}` replaced, in one pass: replacements are not searched again."""
    return re.sub(r"\$\{?(\w+)\}?", lambda found: str(given[found[1]]), text)
