"""slimsvm's estimators in the converter of another package: skl2onnx, which makes one ONNX graph of a whole Pipeline.

What skl2onnx expects is kept: a classifier gives out a label and probabilities, in maps (`zipmap`) unless that is
switched off; without a calibration, or with `raw_scores`, the label and scores of `decision_function`, never in maps.
Regressors give out a column `variable`, outlier detectors columns `label` and `scores`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import slimsvm
from slimsvm.answers import Classes, Inlier, Value
from slimsvm.estimator import MachineEstimator
from slimsvm.formats.onnx import label_table, make_graph
from slimsvm.formats.onnx.graph import OPSET
from slimsvm.machine import KernelMachine
from slimsvm.methods.width_search import WidthSearchCV

OPTIONS = {"zipmap": [True, False, "columns"], "nocl": [True, False], "raw_scores": [True, False]}


def register_skl2onnx() -> None:
    """Make skl2onnx know every estimator of slimsvm: `skl2onnx.to_onnx` then takes them, alone or in a Pipeline.

    Options of a classifier are `zipmap`, `nocl` (numbers in place of labels) and `raw_scores` (scores in place of
    probabilities). Calling it again changes nothing.
    """
    try:
        import skl2onnx
    except ImportError as error:
        raise ImportError("register_skl2onnx needs skl2onnx: pip install skl2onnx 'slimsvm[onnx]'.") from error
    public = (getattr(slimsvm, name) for name in slimsvm.__all__)
    for cls in public:
        if isinstance(cls, type) and issubclass(cls, MachineEstimator):
            classifies = hasattr(cls, "classes_")
            skl2onnx.update_registered_converter(
                cls,
                f"Slimsvm{cls.__name__}",
                _set_types,
                _convert,
                parser=_parse_classifier if classifies else None,
                options=OPTIONS if classifies else None,
            )
    skl2onnx.update_registered_converter(
        WidthSearchCV, "SlimsvmWidthSearchCV", _set_types, _convert, parser=_parse_search, options=OPTIONS
    )


def _parse_classifier(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """The outputs of a classifier: skl2onnx's own where there are probabilities, else a label and scores."""
    from skl2onnx._parse import _parse_sklearn_classifier
    from skl2onnx.common.data_types import Int64TensorType, guess_tensor_type

    if _gives_probabilities(scope, model):
        return _parse_sklearn_classifier(scope, model, inputs, custom_parsers)
    operator = scope.declare_local_operator(f"Slimsvm{type(model).__name__}", model)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("label", Int64TensorType()))
    operator.outputs.append(scope.declare_local_variable("scores", guess_tensor_type(inputs[0].type)))
    return operator.outputs


def _parse_search(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Those of the estimator that a search found."""
    from skl2onnx._parse import parse_sklearn

    best = model.best_estimator_
    options = scope.get_options(model)
    if options:
        scope.add_options(id(best), options)
    return parse_sklearn(scope, best, inputs, custom_parsers=custom_parsers)


def _gives_probabilities(scope: Any, model: MachineEstimator) -> bool:
    options = scope.get_options(model, {"raw_scores": False})
    return model._fitted_machine().calibration is not None and not options["raw_scores"]


def _set_types(operator: Any) -> None:
    """The types and shapes of an operator's outputs."""
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    machine, scope = _machine(operator.scope_inst, operator.raw_operator), operator.scope_inst
    width = operator.inputs[0].type.shape[1:]
    if len(operator.inputs) != 1 or (width and width[0] not in (None, machine.n_features)):
        raise ValueError(
            f"{type(operator.raw_operator).__name__} takes one input of {machine.n_features} features. "
            f"Got {len(operator.inputs)} of {width[0] if width else '?'}."
        )
    n = operator.inputs[0].get_first_dimension()
    answer = machine.answer
    if isinstance(answer, Value):
        operator.outputs[0].type.shape = [n, machine.head.n_scores]
        return
    if isinstance(answer, Inlier):
        operator.outputs[0].set_type(Int64TensorType([n, 1]))
        operator.outputs[1].type.shape = [n, 1]
        return
    kinds = {"U": StringTensorType, "i": Int64TensorType, "f": DoubleTensorType}
    operator.outputs[0].set_type(kinds[label_table(machine.classes).dtype.kind]([n]))
    k = len(machine.classes)
    if _gives_probabilities(scope, operator.raw_operator):
        operator.outputs[1].type.shape = [n, k]
    elif k == 2:
        operator.outputs[1].type.shape = [n]
    else:
        pairs = isinstance(answer, Classes) and answer.shape == "ovo" and machine.head.gives_pairs
        operator.outputs[1].type.shape = [n, k * (k - 1) // 2 if pairs else k]


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Put the machine's graph into the container, under names of its own."""
    from onnx import helper, numpy_helper
    from skl2onnx.common.data_types import DoubleTensorType

    model = operator.raw_operator
    machine = _machine(scope, model)
    is_double = isinstance(operator.inputs[0].type, DoubleTensorType)
    graph, _ = make_graph(machine, "float64" if is_double else "float32")
    prefix = f"{scope.get_unique_operator_name('slimsvm')}_"
    _put_before_names(graph, prefix)
    X = graph.input[0]
    kind = X.type.tensor_type.elem_type
    into = helper.make_node("Cast", [operator.inputs[0].onnx_name], [X.name], f"{prefix}in", to=kind)
    container.nodes.extend([into, *graph.node])
    container.initializers.extend(graph.initializer)
    container.node_domain_version_pair_sets.add(("", OPSET))
    names = [f"{prefix}{name}" for name in _wanted(scope, model)]
    if not isinstance(machine.answer, Classes):
        shape = np.array([-1, operator.outputs[0].type.shape[1]])
        container.initializers.append(numpy_helper.from_array(shape, f"{prefix}shape"))
        columns = [f"{name}_column" for name in names]
        container.nodes.extend(
            helper.make_node("Reshape", [name, f"{prefix}shape"], [column], column)
            for name, column in zip(names, columns, strict=True)
        )
        names = columns
    for name, out in zip(names, operator.outputs, strict=True):
        container.nodes.append(helper.make_node("Identity", [name], [out.onnx_name], f"{name}_out"))


def _put_before_names(graph: Any, prefix: str) -> None:
    """Put a prefix before every name in a graph and in the bodies of its loops."""
    for node in graph.node:
        node.name = prefix + node.name
        for names in (node.input, node.output):
            names[:] = [prefix + name for name in names]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _put_before_names(attribute.g, prefix)
    for named in (*graph.input, *graph.output, *graph.initializer):
        named.name = prefix + named.name


def _wanted(scope: Any, model: MachineEstimator) -> tuple[str, ...]:
    """The graph's outputs that go with the operator's, in order."""
    answer = model.machine_.answer
    if isinstance(answer, Value):
        return ("value",)
    if isinstance(answer, Classes) and _gives_probabilities(scope, model):
        return "label", "probabilities"
    return "label", "scores"


def _machine(scope: Any, model: MachineEstimator) -> KernelMachine:
    """The machine, with numbers for labels where the option `nocl` wants them."""
    machine = model._fitted_machine()
    if isinstance(machine.answer, Classes) and scope.get_options(model, {"nocl": False})["nocl"]:
        return replace(machine, answer=replace(machine.answer, labels=np.arange(len(machine.classes))))
    return machine
