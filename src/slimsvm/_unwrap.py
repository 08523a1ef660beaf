"""The models inside the compressing meta-estimators and inside Pipelines."""

from __future__ import annotations

from typing import Any


def compressed_model(model: Any) -> Any:
    """The compressed model of a fitted CompressedClassifier, CompressedRegressor or CompressedOutlierDetector.

    Any other model is returned unchanged. Code that takes a slimsvm estimator must call this first: the `machine_` of a
    meta-estimator lacks the Pipeline steps before the machine.
    """
    return getattr(model, "compressed_", model)


def advice_on_steps(pipeline: Any) -> str:
    """What to do about the steps of a fitted Pipeline if a single machine is needed."""
    why = getattr(pipeline, "why_not_fused_", "")
    if why:
        return f"fuse=True left steps before the machine: {why}. Apply them to the data, and use the last step alone."
    names = ", ".join(repr(name) for name, _ in pipeline.steps[:-1])
    return f"It has steps before the machine: {names}. Pass fuse=True, which makes transformers part of the machine."


def split_pipeline(model: Any) -> tuple[list[Any], Any]:
    """The transformers before the last estimator of a fitted model, in order, and that estimator.

    Steps that do nothing ("passthrough" or None) are left out. A model that is not a Pipeline has no transformers.
    """
    transformers: list[Any] = []
    model = compressed_model(model)
    while getattr(model, "steps", None):
        *before, (_, last) = model.steps
        transformers += [step for _, step in before if step is not None and not isinstance(step, str)]
        model = compressed_model(last)
    return transformers, model
