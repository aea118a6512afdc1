"""Rules over the score of a model: of a file of ONNX, and of MLflow with a registry in a folder."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, save

from lakes import Event, Lakes, TestLake, at
from tidemill.config.alert_rule import AlertRule
from tidemill.config.pipeline_file import PipelineDefinition, load
from tidemill.errors import InputError, ModelError, SetupError, UsageError
from tidemill.pipeline import failures
from tidemill.pipeline.alerts.episodes import Episodes
from tidemill.pipeline.alerts.scoring import loaded_model, model_version
from tidemill.pipeline.alerts.scoring.model_checks import check_models

INPUTS = ["view_count_1h", "select_count_1h"]


def views(profile: str, number: int, *, kind: str = "view") -> list[Event]:
    return [(None, profile, "g", kind, at(f"10:{minute:02}")) for minute in range(number)]


def weighted(path: Path, *weights: float, bias: float = 0.0, width: int | None = None) -> str:
    """A file of ONNX whose score is the weighted sum of its inputs, behind another output."""
    size = len(weights)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["product"]),
            helper.make_node("Add", ["product", "b"], ["total"]),
        ],
        "weighted",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, width or size])],
        [
            helper.make_tensor_value_info("product", TensorProto.FLOAT, [None, 1]),
            helper.make_tensor_value_info("total", TensorProto.FLOAT, [None, 1]),
        ],
        [
            numpy_helper.from_array(np.array(weights, np.float32).reshape(size, 1), "w"),
            numpy_helper.from_array(np.array([bias], np.float32), "b"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    save(model, str(path))
    return str(path)


def rule(model: str, when: str = "score > 5", **words: Any) -> dict[str, Any]:
    return {"name": "RISKY", "model": model, "features": INPUTS, "when": when, **words}


def look(lake: TestLake, *rules: dict[str, Any]) -> int:
    definition = lake.lake.pipeline.overridden({"alerts": rules})
    return Episodes(replace(lake.lake, pipeline=definition)).look()


def told(lake: TestLake) -> list[tuple[str, str, dict[str, Any]]]:
    """Profile, state and what the rule read, in the order in which they were found."""
    rows = lake.spark.table("engagement_alerts").orderBy("look", "version", "key").collect()
    found = [(json.loads(row["key"])["profile_id"], row["state"], row["features"]) for row in rows]
    return [(who, state, json.loads(read)) for who, state, read in found]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Any]:
    """MLflow, whose server and registry are a folder."""
    import mlflow
    import mlflow.pyfunc

    address = f"file:{tmp_path / 'registry'}"
    mlflow.set_tracking_uri(address)
    mlflow.set_registry_uri(address)
    yield mlflow
    mlflow.set_tracking_uri(None)
    mlflow.set_registry_uri(None)


def registered(mlflow: Any, folder: Path, name: str, text: str) -> int:
    """A version of a model, which is the code in `text`; the alias `champion` names it."""
    code = folder / f"{name}_{len(text)}.py"
    code.write_text(
        "import mlflow, os\n"
        "from mlflow.pyfunc import PythonModel\n"
        "class Model(PythonModel):\n"
        f"    LOADS = {str(folder / 'loads')!r}\n"
        "    def load_context(self, context):\n"
        "        with open(self.LOADS, 'a') as file:\n"
        "            file.write(f'{os.getpid()} {type(self).__name__}\\n')\n"
        "    def predict(self, context, model_input, params=None):\n"
        f"        rows = model_input\n        {text}\n"
        "mlflow.models.set_model(Model())\n"
    )
    with mlflow.start_run():
        info = mlflow.pyfunc.log_model(
            name="model",
            python_model=str(code),
            registered_model_name=name,
            pip_requirements=["mlflow-skinny"],
        )
    number = int(info.registered_model_version)
    mlflow.MlflowClient().set_registered_model_alias(name, "champion", number)
    return number


def test_a_file_of_onnx_says_who_is_risky(lakes: Lakes, tmp_path: Path) -> None:
    lake = lakes.new()
    model = weighted(tmp_path / "risk.onnx", 2.0, 1.0, bias=0.5)
    lake.feed(views("p1", 3) + views("p2", 2) + views("p2", 1, kind="select"))
    assert look(lake, rule(model)) == 2
    version = model_version.current(model).version
    read = {"model_version": version, "score": 6.5, "select_count_1h": 0, "view_count_1h": 3}
    less = {"model_version": version, "score": 5.5, "select_count_1h": 1, "view_count_1h": 2}
    assert told(lake) == [("p1", "fired", read), ("p2", "fired", less)]

    # another output, another model under the name: rules of their own, which look at gold as it is
    assert look(lake, rule(model, output="product")) == 1
    assert [(who, state) for who, state, _ in told(lake)[2:]] == [("p2", "resolved")]
    weighted(tmp_path / "risk.onnx", 1.0, 10.0)
    assert look(lake, rule(model, output="product")) == 2
    assert [(who, state, read["score"]) for who, state, read in told(lake)[3:]] == [
        ("p1", "resolved", 3.0),
        ("p2", "fired", 12.0),
    ]
    assert look(lake, rule(model, output="product")) == 0

    # beside a rule without a model
    both = ({"name": "BUSY", "when": "view_count_1h > 2"}, rule(model, output="product"))
    assert look(lake, *both) == 1


def test_the_registry_says_which_version(lakes: Lakes, tmp_path: Path, registry: Any) -> None:
    lake, mine = lakes.new(), rule("models:/risk@champion")
    lake.feed(views("p1", 3) + views("p2", 1))
    first = registered(registry, tmp_path, "risk", "return rows['view_count_1h'] * 2.0")
    assert first == 1
    assert look(lake, mine) == 1
    lake.feed(views("p2", 3))
    assert look(lake, mine) == 1
    assert [(who, state, read["score"]) for who, state, read in told(lake)] == [
        ("p1", "fired", 6.0),
        ("p2", "fired", 8.0),
    ]
    second = registered(registry, tmp_path, "risk", "return rows['view_count_1h'].to_numpy() * 1.5")
    assert second == 2
    assert look(lake, mine) == 1
    who, state, read = told(lake)[-1]
    assert (who, state, read["score"], read["model_version"]) == ("p1", "resolved", 4.5, "2")
    assert look(lake, rule("models:/risk/1")) == 1  # the version by its number

    # each worker has loaded each version once, however often it was asked
    loads = Counter((tmp_path / "loads").read_text().split("\n")[:-1])
    of_workers = {line: n for line, n in loads.items() if not line.startswith(f"{os.getpid()} ")}
    assert of_workers
    assert max(of_workers.values()) <= 2  # two versions


def test_a_null_is_skipped_or_passed(lakes: Lakes, tmp_path: Path) -> None:
    lake = lakes.new(
        views=[
            {
                "name": "engagement",
                "keys": ["profile_id"],
                "event_time": "event_timestamp",
                "schema": {"profile_id": "string", "gti": "string", "event_type": "string"},
                "features": [
                    {"count": {}, "over": ["1h"]},
                    {"ratio": {"of": "count", "to": "count"}, "over": ["1h"], "name": "same"},
                ],
            }
        ]
    )
    lake.feed(views("p1", 3))
    lake.feed([(None, "p2", "g", "view", at("11:30"))])  # p1 has nothing in its window any more
    model = weighted(tmp_path / "risk.onnx", 1.0, 1.0)
    same = {"features": ["count_1h", "same_ratio_1h"], "when": "coalesce(score, 99) > 50"}
    assert look(lake, rule(model, **same)) == 1
    ((who, _, read),) = told(lake)
    assert (who, read["score"], read["same_ratio_1h"]) == ("p1", None, None)
    assert look(lake, rule(model, nulls="pass", **same)) == 0  # of NaN a sum is NaN, so no score


def test_a_model_that_fails_is_told_by_its_name(
    lakes: Lakes, tmp_path: Path, registry: Any
) -> None:
    lake = lakes.new()
    lake.feed(views("p1", 3))
    registered(registry, tmp_path, "broken", "return 1 / 0")
    with pytest.raises(Exception) as caught:
        look(lake, rule("models:/broken@champion"))
    told_of = failures.explained(caught.value, "alerts")
    assert isinstance(told_of, ModelError)
    assert told_of.where == "models:/broken@champion"
    assert told_of.message == "failed: ZeroDivisionError: division by zero"


def definition(*rules: dict[str, Any]) -> PipelineDefinition:
    return load("engagement").overridden({"alerts": rules})


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"features": []}, "alert RISKY: features are what its model takes, in its order"),
        ({"features": ["view_count_1"]}, "no feature or key 'view_count_1'"),
        ({"features": ["gti"]}, "gti is STRING, which a model does not take"),
        ({"when": "view_count_1h > 2"}, "alert RISKY has a model, and does not read score"),
        ({"model": None}, "alert RISKY has no model that takes features"),
    ],
)
def test_a_rule_that_cannot_be_is_refused(words: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        definition({**rule("risk.onnx"), **words})


def test_without_a_model_a_rule_is_written_as_before() -> None:
    plain = AlertRule(name="BUSY", view="engagement", when="view_count_1h > 2")
    assert json.loads(plain.written) == {
        "name": "BUSY",
        "view": "engagement",
        "when": "view_count_1h > 2",
        "until": None,
        "cooldown": None,
    }


def test_models_are_looked_at_before_anything_starts(
    tmp_path: Path, registry: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(model: str, **words: Any) -> str:
        with pytest.raises(InputError) as caught:
            check_models(definition(rule(model, **words)))
        return str(caught.value)

    assert "is no model: No such file or directory" in refused(str(tmp_path / "none.onnx"))
    assert "is no model: No such file or directory" in refused(str(tmp_path))
    (tmp_path / "text.onnx").write_text("no model")
    assert "cannot be loaded" in refused(str(tmp_path / "text.onnx"))
    three = weighted(tmp_path / "three.onnx", 1.0, 1.0, 1.0)
    assert "takes 3 numbers for a row, and the rule gives 2" in refused(three)
    good = weighted(tmp_path / "good.onnx", 1.0, 1.0)
    assert "has no output 'probability' (expected: one of product, total)" in refused(
        good, output="probability"
    )
    assert "names no version of the model (expected: models:/risk@alias" in refused("models:/risk")
    assert "'Production' is no version" in refused("models:/risk/Production")
    assert "is not in the registry" in refused("models:/risk@champion")
    ((_, version),) = check_models(definition(rule(good)))
    assert (version.kind, version.uri) == ("onnx", good)
    monkeypatch.setattr(model_version, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"pip install 'tidemill\[model\]'"):
        check_models(definition(rule(good)))


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        ([1, 2], [1.0, 2.0]),
        (np.array([[1.0], [2.0]]), [1.0, 2.0]),
        (np.array([[0.9, 0.1], [0.2, 0.8]]), [0.1, 0.8]),
        ([{0: 0.75, 1: 0.25}, {0: 0.5, 1: 0.5}], [0.25, 0.5]),
    ],
)
def test_one_number_for_each_row(found: Any, wanted: list[float]) -> None:
    assert loaded_model.numbers(found).tolist() == wanted


def test_what_is_no_number_for_each_row_is_refused() -> None:
    with pytest.raises(ValueError, match="it gives 3 dimensions"):
        loaded_model.numbers(np.zeros((1, 1, 1)))
