"""Which version of a model a rule means: by MLflow's registry, or by the content of a file.

models:/card_risk@champion    the version that the alias names now
models:/card_risk/7           that version
runs:/..., s3://..., a folder with MLmodel    MLflow's, by what they say of themselves
risk.onnx                     a file of ONNX, by its bytes
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from tidemill.errors import InputError, SetupError

MODEL_EXTRA = "pip install 'tidemill[model]'"
_REGISTERED = re.compile(r"models:/(?P<name>[^/@]+)(?:@(?P<alias>[^/@]+)|/(?P<version>[^/@]+))?")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]+:/")


@dataclass(frozen=True)
class ModelVersion:
    """A version of a model: what is loaded, by which library, what it is called, and the addresses
    of MLflow's tracking server and registry where they are asked."""

    kind: Literal["onnx", "mlflow"]
    uri: str
    version: str
    tracking: str = ""
    registry: str = ""


def current(model: str) -> ModelVersion:
    """Return the version that a rule's `model` means now; InputError where there is none,
    SetupError where what reads it is not installed."""
    if model.endswith(".onnx"):
        _require("onnxruntime", model)
        return ModelVersion("onnx", model, _digest(Path(model), model))
    _require("mlflow", model)
    mlflow = mlflow_module()
    addresses = (mlflow.get_tracking_uri(), mlflow.get_registry_uri())
    if registered := _REGISTERED.fullmatch(model):
        number = _number(registered, model)
        uri = f"models:/{registered['name']}/{number}"
        return ModelVersion("mlflow", uri, number, *addresses)
    if _SCHEME.match(model):
        return ModelVersion("mlflow", model, model.rpartition("/")[2], *addresses)
    said = _digest(Path(model) / "MLmodel", model)
    return ModelVersion("mlflow", str(Path(model).absolute()), said, *addresses)


def mlflow_module() -> Any:
    """Return MLflow; it tells nobody that it is used, unless the environment says that it may."""
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    return import_module("mlflow")


def _number(registered: re.Match[str], model: str) -> str:
    if registered["version"]:
        if not registered["version"].isdigit():
            raise InputError(
                f"{registered['version']!r} is no version of a model",
                where=model,
                expected=f"models:/{registered['name']}/7, or models:/{registered['name']}@alias",
            )
        return registered["version"]
    if not registered["alias"]:
        raise InputError(
            "names no version of the model",
            where=model,
            expected=f"models:/{registered['name']}@alias, or models:/{registered['name']}/7",
        )
    client = import_module("mlflow").MlflowClient()
    try:
        return str(
            client.get_model_version_by_alias(registered["name"], registered["alias"]).version
        )
    except Exception as error:  # each kind of registry has its own
        raise InputError(f"is not in the registry: {_short(error)}", where=model) from error


def _digest(file: Path, model: str) -> str:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise InputError(
            f"is no model: {error.strerror} ({file})",
            where=model,
            expected="a file that ends with .onnx, a folder of MLflow's, or models:/NAME@alias",
        ) from error


def _require(module: str, model: str) -> None:
    if find_spec(module) is None:
        raise SetupError(f"{module} cannot be imported", where=model, expected=MODEL_EXTRA)


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
