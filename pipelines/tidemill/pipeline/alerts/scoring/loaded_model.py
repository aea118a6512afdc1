"""Models where they are asked: in Spark's Python workers, each version loaded once.

What a model gives becomes one number for each row: a single column as it is, of several columns the
last one, which is the probability of the last class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tidemill.errors import InputError
from tidemill.pipeline.alerts.scoring.model_version import ModelVersion, mlflow_module

Numbers = npt.NDArray[np.float64]
Predict = Callable[[pd.DataFrame], Numbers]
KEPT = 8  # versions in a worker
_OF_ONNX = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}


@lru_cache(maxsize=KEPT)
def loaded(version: ModelVersion, inputs: tuple[str, ...], output: str | None) -> Predict:
    """Return what gives the model's numbers for rows that have the inputs as columns; InputError
    where it takes others, or has no such output."""
    if version.kind == "onnx":
        return _of_onnx(version, inputs, output)
    return _of_mlflow(version, inputs, output)


def _of_onnx(version: ModelVersion, inputs: tuple[str, ...], output: str | None) -> Predict:
    runtime = import_module("onnxruntime")
    try:
        options = runtime.SessionOptions()
        options.intra_op_num_threads = 1  # Spark has a worker for each core
        session = runtime.InferenceSession(version.uri, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's own classes have no common base
        raise InputError(f"cannot be loaded: {_line(error)}", where=version.uri) from error
    takes = {each.name: each for each in session.get_inputs()}
    gives = [each.name for each in session.get_outputs()]
    _check_inputs(version, takes, inputs)
    if output is not None and output not in gives:
        raise InputError(
            f"has no output {output!r}", where=version.uri, expected=f"one of {', '.join(gives)}"
        )
    asked = output or gives[-1]

    def predict(rows: pd.DataFrame) -> Numbers:
        if len(takes) == 1:
            ((name, takes_one),) = takes.items()
            fed = {name: rows[list(inputs)].to_numpy(_OF_ONNX[takes_one.type])}
        else:
            fed = {name: rows[[name]].to_numpy(_OF_ONNX[each.type]) for name, each in takes.items()}
        return numbers(session.run([asked], fed)[0])

    return predict


def _check_inputs(version: ModelVersion, takes: dict[str, Any], inputs: Sequence[str]) -> None:
    others = sorted({each.type for each in takes.values()} - set(_OF_ONNX))
    if others:
        raise InputError(
            f"takes {', '.join(others)}", where=version.uri, expected="tensors of numbers"
        )
    if len(takes) > 1:
        if set(takes) != set(inputs):
            found = ", ".join(takes)
            raise InputError(
                f"has the inputs {found}", where=version.uri, expected=", ".join(inputs)
            )
        return
    (one,) = takes.values()
    width = one.shape[-1] if len(one.shape) == 2 else None
    if isinstance(width, int) and width != len(inputs):
        message = f"takes {width} numbers for a row, and the rule gives {len(inputs)}"
        raise InputError(message, where=version.uri, expected=f"{width} features, in its order")


def _of_mlflow(version: ModelVersion, inputs: tuple[str, ...], output: str | None) -> Predict:
    mlflow = mlflow_module()
    mlflow.set_tracking_uri(version.tracking)
    mlflow.set_registry_uri(version.registry)
    pyfunc = import_module("mlflow.pyfunc")
    try:
        model = pyfunc.load_model(version.uri)
    except Exception as error:  # a model is code, and its code is run here
        raise InputError(f"cannot be loaded: {_line(error)}", where=version.uri) from error
    schema = model.metadata.get_input_schema()
    named = schema.input_names() if schema is not None and schema.has_input_names() else []
    missing = [name for name in named if name not in inputs]
    if missing:
        raise InputError(
            f"takes {', '.join(map(str, named))}, and the rule does not give "
            f"{', '.join(map(str, missing))}",
            where=version.uri,
            expected="features by these names",
        )

    def predict(rows: pd.DataFrame) -> Numbers:
        found = model.predict(rows[list(inputs)])
        if output is not None:
            found = found[output]
        return numbers(found)

    return predict


def numbers(found: Any) -> Numbers:
    """Return one number for each row of what a model gave; a list of probabilities by class gives
    that of the last one. ValueError for anything else."""
    if isinstance(found, (list, tuple)) and found and isinstance(found[0], dict):
        found = [list(each.values())[-1] for each in found]
    array = np.asarray(found, dtype=np.float64)
    if array.ndim > 2 or array.ndim == 0:
        raise ValueError(f"it gives {array.ndim} dimensions, not a number for each row")
    return array if array.ndim == 1 else array[:, -1]


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
