"""The text of a module: its constants and tables, and the pieces of `runtime/` that the machine needs."""

from __future__ import annotations

from functools import cache
from importlib.resources import files as resources
from typing import Any

from slimsvm.answers import Classes, Inlier, Value
from slimsvm.calibration import Averaged, Calibration, Isotonic, PairwiseSigmoid, Sigmoid, Softmax
from slimsvm.formats.javascript import raw_rows
from slimsvm.formats.javascript.literals import Code, literal
from slimsvm.heads import LinearHead, MirrorHead, PairsHead, PairwiseHead, StagedHead
from slimsvm.machine import KernelMachine
from slimsvm.tables import Form

PROFILES = {
    "linear": "t",
    "rbf": "Math.exp(-{gamma} * t)",
    "laplacian": "Math.exp(-{gamma} * t)",
    "poly": "({gamma} * t + {coef0}) ** {degree}",
    "sigmoid": "Math.tanh({gamma} * t + {coef0})",
}
OPTIONAL_TABLES = ("map_shift", "map_offset")
LEFT_OUT = ("skips", "lengths", "order")  # tables that the module has as constants of another form
MEMBER_TABLES = {"sigmoid": ("slopes", "lifts"), "isotonic": ("knots", "levels", "knot_starts"), "softmax": ()}
PREDICT = {
    "classes": "export const predict = (row) => CLASSES[{place}];",
    "value": "export const predict = (row) => decision(row);",
    "inlier": "export const predict = (row) => (scores(row)[0] > 0 ? 1 : -1);",
}


@cache
def piece(name: str) -> str:
    """The text of one file of `runtime/`."""
    return resources(__package__).joinpath("runtime", f"{name}.js").read_text(encoding="utf-8")


def module_text(machine: KernelMachine, form: Form, tables: dict[str, Code], labels: list[Any], header: str) -> str:
    """The module of a machine whose tables are given; `form` is the machine without its preparation."""
    lines = [header, piece("tables")]
    lines += [f"const {name} = {literal(value)};" for name, value in _constants(machine, form, labels).items()]
    lines += [f"const {name} = {code.text};" for name, code in tables.items() if name not in LEFT_OUT]
    lines += [f"const {name} = null;" for name in OPTIONAL_TABLES if form.input_map is not None and name not in tables]
    lines.append("")
    lines += _rows(machine) + _scores(form, "columns" in tables) + _answers(form.machine, form)
    return "\n".join(line.rstrip("\n") for line in lines) + "\n"


def has_kernel_values(form: Form) -> bool:
    """Whether the module computes kernel values of vectors."""
    return not form.presummed


def has_contributions(form: Form) -> bool:
    """Whether scores are sums over vectors."""
    return not form.presummed and isinstance(form.head, (LinearHead, PairsHead))


def _constants(machine: KernelMachine, form: Form, labels: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "NAMES": None if machine.feature_names is None else list(machine.feature_names),
        "USED": [int(i) for i in form.used] if form.used is not None and form.skips else None,
        "M": form.n_points,
        "P": form.n_coordinates,
        "S": form.head.n_scores,
    }
    if machine.preparation is None:
        found["N_FEATURES"] = machine.n_features
    else:
        found |= raw_rows.constants(machine.preparation)
    answer = machine.answer
    if isinstance(answer, Classes):
        found["CLASSES"] = labels
        if form.head.gives_pairs:
            found |= {"ORDER": list(answer.order), "SHAPE": answer.shape, "BREAK_TIES": answer.break_ties}
        if answer.n_models is not None:
            found["N_MODELS"] = answer.n_models
        if answer.n_classes == 2:
            found["ZERO_IS_SECOND"] = answer.order[1] == 1
    if isinstance(answer, Value):
        found["IS_FLAT"] = answer.flat
        found["VALUE_FUNCTION"] = None if answer.function is None else Code(f"(x) => FUNCTIONS.{answer.function}(x)")
    if isinstance(form.head, MirrorHead):
        found |= {"IS_RADIAL": machine.kernel.geometry != "dot", "GAMMA": machine.kernel.gamma}
    found["model"] = Code(f"Object.freeze({literal(_described(machine, labels))})")
    return found


def _described(machine: KernelMachine, labels: list[Any]) -> dict[str, Any]:
    return {
        "task": machine.answer.name,
        "classes": labels if isinstance(machine.answer, Classes) else None,
        "features": Code("NAMES"),
        "nFeatures": machine.n_features,
        "nVectors": machine.n_vectors,
        "kernel": machine.kernel.name,
        "digest": machine.digest(),
    }


def _rows(machine: KernelMachine) -> list[str]:
    if machine.preparation is None:
        return [piece("plain_rows")]
    names = ["functions", "raw_rows"]
    if raw_rows.uses_quantiles(machine.preparation):
        names += ["interpolation", "quantiles"]
    return [piece(name) for name in names]


def _scores(form: Form, sparse: bool) -> list[str]:
    kernel, head = form.machine.kernel, form.head
    lines = ["const mapped = (x) => x;\n"]
    if form.input_map is not None:
        lines = [piece("map_diagonal" if form.input_map.is_diagonal else "map_matrix")]
    lines.append(piece(f"{'sparse_' if sparse else ''}{kernel.geometry}"))
    if form.presummed:
        return [*lines, piece("presummed")]
    gamma = literal(float(kernel.gamma)) if form.gammas is None else "gammas[j]"
    profile = PROFILES[kernel.name].format(
        gamma=gamma, coef0=literal(float(kernel.coef0)), degree=literal(float(kernel.degree))
    )
    lines.append(f"const profile = (t, j) => {profile};\nconst kernel = (u, j) => profile(quantity(u, j), j);\n")
    kind = head.name if isinstance(head, (MirrorHead, PairwiseHead, StagedHead)) else "shared"
    return [*lines, piece(kind)]


def _answers(machine: KernelMachine, form: Form) -> list[str]:
    answer, calibration = machine.answer, machine.calibration
    lines = _decisions(machine, form)
    place = "classOf(scores(row))"
    if calibration is not None:
        lines += _calibration(machine, form)
        place = "largest(probabilities(row))" if calibration.decides else place
    lines += [piece("interface"), "// What predict gives in Python."]
    lines.append(PREDICT[answer.name].format(place=place))
    if calibration is not None:
        lines.append("// The probability of each class.")
        lines.append("export const probabilities = (row) => chances(calibrated(scores(row)));")
    if has_kernel_values(form):
        lines.append(piece("kernel_values"))
    if has_contributions(form):
        lines.append(piece("contributions"))
    return [*lines, "export { model };"]


def _decisions(machine: KernelMachine, form: Form) -> list[str]:
    """The pieces that define `decided`, and for classes `classOf`, from the head's scores."""
    answer = machine.answer
    if not isinstance(answer, Classes):
        names = ["inliers" if isinstance(answer, Inlier) else "values"]
        if isinstance(answer, Value) and answer.function is not None and machine.preparation is None:
            names.insert(0, "functions")
        return [piece(name) for name in names]
    pairs = form.head.gives_pairs
    own = piece("pairs" if pairs else "one_score" if answer.n_classes == 2 else "largest_score")
    if answer.n_models is None:
        return [piece("largest"), own]
    by_class = "(s) => (N_CLASSES === 2 ? -sortedPairs(s)[0] : oneVsRest(sortedPairs(s)))" if pairs else "decided"
    single = ["const single = (() => {", own, f"const byClass = {by_class};", "return { decided, byClass };", "})();"]
    return [piece("largest"), *single, piece("ensemble")]


def _calibration(machine: KernelMachine, form: Form) -> list[str]:
    """The pieces that make probabilities of the scores that `calibrated` gives."""
    calibration, raw = machine.calibration, machine.preparation
    assert calibration is not None
    ensemble = isinstance(calibration, Averaged)
    members = calibration.members if isinstance(calibration, Averaged) else (calibration,)
    reads_decision = form.head.gives_pairs and not calibration.reads_pairs
    read = f"[{'single.' if ensemble else ''}decided(found)].flat()" if reads_decision else "found"
    lines = ["const calibrated = (found) => found;" if ensemble else f"const calibrated = (found) => {read};"]
    couples = any(isinstance(one, PairwiseSigmoid) or getattr(one, "coupled", False) for one in members)
    names = ["normalised", *(["coupling"] if couples else [])]
    if any(isinstance(one, Isotonic) for one in members) and (raw is None or not raw_rows.uses_quantiles(raw)):
        names.append("interpolation")
    lines += [piece(name) for name in names]
    if not ensemble:
        return lines + _member(calibration)
    lines.append("const members = [")
    for i, member in enumerate(members):
        renamed = [f"const {name} = {name}_{i};" for name in MEMBER_TABLES[member.name]]
        lines += ["(() => {", *renamed, *_member(member), "return chances;", "})(),"]
    lines += ["];", f"const readScores = (found) => {read};"]
    lines.append("const chances = (found) => mean(perModel(found).map((own, i) => members[i](readScores(own))));")
    return lines


def _member(calibration: Calibration) -> list[str]:
    """The function `chances` of one calibration, and what it needs of its own."""
    lines = []
    if isinstance(calibration, Sigmoid):
        body = "{ const r = within(expit(e)); return coupled([[0, r], [1 - r, 0]])[1]; }"
        lines.append(f"const secondOf = (e) => {body if calibration.coupled else 'expit(-e)'};")
    if isinstance(calibration, Softmax):
        lines.append(f"const SLOPE = {literal(calibration.slope)};")
    return [*lines, piece(calibration.name)]
