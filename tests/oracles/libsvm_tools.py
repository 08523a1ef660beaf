"""LIBSVM itself: what `svm-predict`, `svm-scale` and the libsvm package say about a model file and data."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits


def require_tools(*names: str) -> None:
    """Skip where LIBSVM's programs are not installed; in CI they must be."""
    if not all(shutil.which(name) for name in names):
        if os.environ.get("CI"):
            pytest.fail(f"{' and '.join(names)} are missing: install libsvm-tools.")
        pytest.skip(f"{' and '.join(names)} are not installed (Debian: libsvm-tools)")


def data_text(X: Any, y: Any) -> str:
    """Data in LIBSVM's format, zeros left out."""
    lines = []
    for x, target in zip(X, y, strict=True):
        pairs = " ".join(f"{i + 1}:{float(v)!r}" for i, v in enumerate(x) if v)
        lines.append(f"{float(target) if isinstance(target, float) else int(target)} {pairs}\n")
    return "".join(lines)


def svm_predict(model: Path, data: Path, probability: bool = False) -> list[list[str]]:
    """The lines that svm-predict writes, split."""
    output = data.with_name(data.name + ".out")
    command = ["svm-predict", "-b", str(int(probability)), data, model, output]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr + done.stdout
    return [line.split() for line in output.read_text().splitlines()]


def svm_scale(ranges: Path, data: Path) -> Path:
    """The data as `svm-scale -r` writes them."""
    scaled = data.with_name(data.name + ".scaled")
    done = subprocess.run(["svm-scale", "-r", ranges, data], check=True, capture_output=True)
    scaled.write_bytes(done.stdout)
    return scaled


def values(path: Path, X: Any, probability: bool = False) -> tuple[list[int], NDArray[np.float64]]:
    """Labels in the file's order, and decision values or probabilities by the libsvm package.

    Its own `svm_predict` gives the C code room for one value of a nu_svc, whatever the classes.
    """
    svmutil = pytest.importorskip("libsvm.svmutil")
    svm = pytest.importorskip("libsvm.svm")
    model = svmutil.svm_load_model(str(path))
    k = model.get_nr_class()
    evaluate = svm.libsvm.svm_predict_probability if probability else svm.libsvm.svm_predict_values
    found = []
    with threadpool_limits(1, user_api="openmp"):  # one row is too little for its threads, which spin
        for x in X:
            room = (ctypes.c_double * (k * k))()
            node, _ = svm.gen_svm_nodearray({i + 1: float(v) for i, v in enumerate(x) if v})
            evaluate(model, node, room)
            found.append(list(room))
    return model.get_labels() if model.label else [], np.array(found)
