"""The aggregates' pages are as their declarations are, and say the same in YAML and in Python."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tidemill.features.aggregates import SHIPPED
from tidemill.features.documentation import INDEX, pages, write
from tidemill.features.feature import Feature

FOLDER = Path(__file__).parents[2] / "docs" / "aggregates"
FRESH = (
    "run `PYTHONPATH=pipelines .venv/bin/python -m tidemill.features.documentation docs/aggregates`"
)


def test_the_pages_are_fresh() -> None:
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert found == pages(), FRESH


def test_every_shipped_aggregate_has_a_page_that_the_index_names() -> None:
    texts = pages()
    assert set(texts) == {INDEX, *(f"{name}.md" for name in (*SHIPPED, "ratio"))}
    assert set(re.findall(r"\((\w+\.md)\)", texts[INDEX])) == set(texts) - {INDEX}


@pytest.mark.parametrize("name", [*SHIPPED, "ratio"])
def test_yaml_and_python_declare_the_same(name: str) -> None:
    blocks = dict(re.findall(r"```(yaml|python)\n(.*?)```", pages()[f"{name}.md"], re.DOTALL))
    said: dict[str, Any] = {}
    exec(blocks["python"], said)
    declared = yaml.safe_load(blocks["yaml"])["features"][-1]
    assert Feature.model_validate(declared) == said["feature"]


def test_a_page_of_an_aggregate_that_is_gone_goes(tmp_path: Path) -> None:
    (tmp_path / "median.md").write_text("gone")
    assert sorted(write(tmp_path)) == sorted(tmp_path.iterdir())
    assert not (tmp_path / "median.md").exists()
