"""Converters of slimsvm's estimators for skl2onnx, which turns a whole Pipeline into one ONNX graph.

The outputs follow skl2onnx. A classifier with a calibration returns labels and probabilities, the latter as maps unless
the option `zipmap` is switched off. Without a calibration, or with `raw_scores`, it returns labels and decision values,
never as maps. Regressors return a column `variable`, outlier detectors the columns `label` and `scores`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import slimsvm
from slimsvm.answers import Classes, Inlier, Value
from slimsvm.compression.estimator import CompressedClassifier, CompressedOutlierDetector, CompressedRegressor
from slimsvm.compression.prefit_pipeline import PrefitPipeline
from slimsvm.estimator import SLIM, MachineEstimator
from slimsvm.formats.onnx import label_table, make_graph
from slimsvm.formats.onnx.graph import OPSET
from slimsvm.machine import KernelMachine
from slimsvm.methods.growing.width_search import WidthSearchCV

OPTIONS = {"zipmap": [True, False, "columns"], "nocl": [True, False], "raw_scores": [True, False]}


def register_skl2onnx() -> None:
    """Register all estimators of slimsvm with skl2onnx, so that `skl2onnx.to_onnx` converts them, also in a Pipeline.

    The options of classifiers are `zipmap`, `nocl` (class numbers instead of labels) and `raw_scores` (decision values
    instead of probabilities). Calling the function again changes nothing.
    """
    try:
        import skl2onnx
    except ImportError as error:
        raise ImportError("register_skl2onnx needs skl2onnx: pip install skl2onnx 'slimsvm[onnx]'.") from error
    public = (getattr(slimsvm, name) for name in slimsvm.__all__)
    trainers = [cls for cls in public if isinstance(cls, type) and issubclass(cls, MachineEstimator)]
    for cls in (*trainers, *SLIM.values()):
        classifies = hasattr(cls, "classes_")
        skl2onnx.update_registered_converter(
            cls,
            f"Slimsvm{cls.__name__}",
            _set_types,
            _convert,
            parser=_parse_classifier if classifies else None,
            options=OPTIONS if classifies else None,
        )
    for cls in (WidthSearchCV, CompressedClassifier, CompressedRegressor, CompressedOutlierDetector):
        skl2onnx.update_registered_converter(
            cls, f"Slimsvm{cls.__name__}", _set_types, _convert, parser=_parse_inner, options=OPTIONS
        )
    _register_pipeline()


def _register_pipeline() -> None:
    """Register the Pipeline that `compress` returns, with the functions of any Pipeline."""
    import skl2onnx
    from skl2onnx._parse import _parse_sklearn_pipeline
    from skl2onnx.operator_converters.pipelines import convert_pipeline
    from skl2onnx.shape_calculators.pipelines import pipeline_shape_calculator

    skl2onnx.update_registered_converter(
        PrefitPipeline,
        "SlimsvmPipeline",
        pipeline_shape_calculator,
        convert_pipeline,
        parser=_parse_sklearn_pipeline,
        options=OPTIONS,
    )


def _parse_classifier(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """The outputs of a classifier: skl2onnx's own if it has probabilities, else labels and scores."""
    from skl2onnx._parse import _parse_sklearn_classifier
    from skl2onnx.common.data_types import Int64TensorType, guess_tensor_type

    if _gives_probabilities(scope, model):
        return _parse_sklearn_classifier(scope, model, inputs, custom_parsers)
    operator = scope.declare_local_operator(f"Slimsvm{type(model).__name__}", model)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("label", Int64TensorType()))
    operator.outputs.append(scope.declare_local_variable("scores", guess_tensor_type(inputs[0].type)))
    return operator.outputs


def _parse_inner(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """The outputs of the model inside a search or a compressing meta-estimator."""
    from skl2onnx._parse import parse_sklearn

    inner = model.best_estimator_ if isinstance(model, WidthSearchCV) else model._fitted()
    options = scope.get_options(model)
    if options:
        scope.add_options(id(inner), options)
    return parse_sklearn(scope, inner, inputs, custom_parsers=custom_parsers)


def _gives_probabilities(scope: Any, model: MachineEstimator) -> bool:
    options = scope.get_options(model, {"raw_scores": False})
    return model._fitted_machine().calibration is not None and not options["raw_scores"]


def _set_types(operator: Any) -> None:
    """Set the types and shapes of an operator's outputs."""
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType, StringTensorType

    machine, scope = _machine(operator.scope_inst, operator.raw_operator), operator.scope_inst
    if machine.preparation is not None:
        raise ValueError(
            f"{type(operator.raw_operator).__name__} reads the columns of a table, and skl2onnx passes it one matrix. "
            f"Use slimsvm.export(model, 'onnx', path), or compress the Pipeline with fuse=False."
        )
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
    """Add the graph of the machine to the container, under unique names."""
    from onnx import helper, numpy_helper
    from skl2onnx.common.data_types import DoubleTensorType

    model = operator.raw_operator
    machine = _machine(scope, model)
    is_double = isinstance(operator.inputs[0].type, DoubleTensorType)
    graph, _ = make_graph(machine, "float64" if is_double else "float32")
    prefix = f"{scope.get_unique_operator_name('slimsvm')}_"
    _prefix_names(graph, prefix)
    X = graph.input[0]
    kind = X.type.tensor_type.elem_type
    into = helper.make_node("Cast", [operator.inputs[0].onnx_name], [X.name], f"{prefix}in", to=kind)
    container.nodes.extend([into, *graph.node])
    container.initializers.extend(graph.initializer)
    container.node_domain_version_pair_sets.add(("", OPSET))
    names = [f"{prefix}{name}" for name in _output_names(scope, model)]
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


def _prefix_names(graph: Any, prefix: str) -> None:
    """Add a prefix to every name in a graph and in the bodies of its loops."""
    for node in graph.node:
        node.name = prefix + node.name
        for names in (node.input, node.output):
            names[:] = [prefix + name for name in names]
        for attribute in node.attribute:
            if attribute.HasField("g"):
                _prefix_names(attribute.g, prefix)
    for named in (*graph.input, *graph.output, *graph.initializer):
        named.name = prefix + named.name


def _output_names(scope: Any, model: MachineEstimator) -> tuple[str, ...]:
    """The names of the graph's outputs, in the order of the operator's outputs."""
    answer = model.machine_.answer
    if isinstance(answer, Value):
        return ("value",)
    if isinstance(answer, Classes) and _gives_probabilities(scope, model):
        return "label", "probabilities"
    return "label", "scores"


def _machine(scope: Any, model: MachineEstimator) -> KernelMachine:
    """The machine of an estimator, with class numbers instead of labels if the option `nocl` is set."""
    machine = model._fitted_machine()
    if isinstance(machine.answer, Classes) and scope.get_options(model, {"nocl": False})["nocl"]:
        return replace(machine, answer=replace(machine.answer, labels=np.arange(len(machine.classes))))
    return machine
