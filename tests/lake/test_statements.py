"""The statements of `sql/`: each is finished for a view, parses, and does what its cases show.

A case is a text in `tests/lake/statements`: the statement and its parameters, then tables between
`==` lines, the last one what the statement yields (rows in any order). The view of the cases is
small, so that a row can be read:

    plays: keys profile_id, gti; count().by("kind", ["play", "stop"]).over("1h", "10m")
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timezone
from itertools import takewhile
from pathlib import Path
from string import Template

import pytest
import sqlglot
from pyspark.sql import SparkSession

from texttable import TextTable
from tidemill.config.pipeline_file import load
from tidemill.features import FeatureView, count
from tidemill.lake.parameters import ask, bound
from tidemill.lake.statements import names, statement
from tidemill.lake.tables.view_tables import view_tables

CASES = sorted((Path(__file__).parent / "statements").glob("*.txt"))
SHIPPED = load("engagement").views[0]


def plays(when_empty: str = "zero") -> FeatureView:
    return FeatureView(
        name="plays",
        keys=["profile_id", "gti"],
        event_time="event_timestamp",
        when_empty=when_empty,
        features=[count().by("kind", ["play", "stop"]).over("1h", "10m")],
    )


@dataclass(frozen=True)
class Case:
    """What stands in a case's file."""

    said: dict[str, str]
    inputs: dict[str, TextTable]
    expected: TextTable

    @classmethod
    def read(cls, path: Path) -> Case:
        text = "\n".join(
            line for line in path.read_text(encoding="utf-8").splitlines() if line[:1] != "#"
        )
        head, *parts = re.split(r"^== (\w+)\n", text, flags=re.MULTILINE)
        said = dict(line.split(": ", 1) for line in head.splitlines() if line.strip())
        found = {name: TextTable.parse(body) for name, body in zip(*[iter(parts)] * 2, strict=True)}
        return cls(said, found, found.pop("expected"))

    @property
    def view(self) -> FeatureView:
        if self.said.get("view") == "engagement":
            return SHIPPED
        return plays(self.said.get("when_empty", "zero"))

    @property
    def parameters(self) -> dict[str, object]:
        times = dict.fromkeys(("as_of", "as_of_before", "low", "high", "before"), _time)
        flags = dict.fromkeys(("ticks", "whole"), lambda text: text == "true")
        numbers = dict.fromkeys(("batch", "batch_before", "hours", "sample"), int)
        readers = {**times, **flags, **numbers}
        return {name: read(self.said[name]) for name, read in readers.items() if name in self.said}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


def _types(view: FeatureView) -> dict[str, str]:
    """The type of each column that a case may give, from the tables' declarations."""
    made = view_tables(view)
    declared = [c for table in (made.buckets, made.hours, made.gold) for c in table.columns]
    event = {**{n: t.upper() for n, t in view.event_schema.items()}, view.event_time: "TIMESTAMP"}
    event["event_hour"] = "TIMESTAMP"
    return {**event, **{column.name: column.type for column in declared}}


def _give(spark: SparkSession, name: str, table: TextTable, view: FeatureView) -> None:
    types = _types(view)
    readers = {"STRING": str, "BIGINT": int, "TIMESTAMP": _time, "DATE": date.fromisoformat}
    read = [readers[types[name]] for name in table.columns]
    rows = [[r(cell) for r, cell in zip(read, row, strict=True)] for row in table.rows]
    schema = ", ".join(f"{name} {types[name]}" for name in table.columns)
    spark.createDataFrame(rows, schema).createOrReplaceTempView(name)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_yields_what_it_says(apart: SparkSession, path: Path) -> None:
    case = Case.read(path)
    for name, table in case.inputs.items():
        _give(apart, name, table, case.view)
    text = statement(case.said["statement"], case.view, by_hours="hours" in case.said)
    frame = ask(apart, text, case.parameters)
    found = TextTable.of(frame.columns, frame.collect())
    assert found.columns == case.expected.columns
    difference = found.sorted().differences(case.expected.sorted())
    assert not difference, f"{path.name}:\n{difference}"


@pytest.mark.parametrize("name", names())
def test_a_file_says_what_it_yields(name: str) -> None:
    lines = names()[name].read_text(encoding="utf-8").splitlines()
    header = list(takewhile(lambda line: line.startswith("--"), lines))
    assert re.match(rf"-- (engagement_)?{name}: \w.*[.;?]", header[0]), header[0]
    for word in ("grain", "input"):
        assert any(line.startswith(f"-- {word}: ") for line in header), f"no {word}"
    used = set(re.findall(r"(?<!:):([a-z_]+)", "\n".join(lines[len(header) :])))
    told = set(re.findall(r":([a-z_]+)", "\n".join(header)))
    assert used <= told | _inherited(name), "a parameter is not in the header"


def _inherited(name: str) -> set[str]:
    """Parameters of a statement that stands inside this one."""
    text = names()[name].read_text(encoding="utf-8")
    inside = re.findall(r"\$\{(\w+)_statement\}", text)
    headers = "\n".join(
        line
        for part in inside
        for line in names()[part].read_text(encoding="utf-8").splitlines()
        if line.startswith("--")
    )
    told = set(re.findall(r":([a-z_]+)", headers))
    return told.union(*map(_inherited, inside))


@pytest.mark.parametrize("view", [SHIPPED, plays(), plays("delete")], ids=["shipped", "a", "b"])
@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("by_hours", [False, True])
def test_a_finished_statement_parses_as_one(name: str, view: FeatureView, by_hours: bool) -> None:
    text = statement(name, view, by_hours=by_hours)
    assert "${" not in text
    if name == "minute_counts":  # Spark takes a keyword as a name here, sqlglot does not
        text = text.replace("AS select,", "AS `select`,")
    parsed = [tree for tree in sqlglot.parse(text, read="databricks") if tree]
    assert len(parsed) == 1
    assert not isinstance(parsed[0], sqlglot.exp.Command), "sqlglot does not know it"


@pytest.mark.parametrize("name", names())
def test_every_name_in_a_statement_is_a_list_of_the_view(name: str) -> None:
    template = Template(names()[name].read_text(encoding="utf-8"))
    assert template.is_valid()
    for placeholder in template.get_identifiers():
        assert f"${{{placeholder}}}" in template.template, f"${placeholder} without braces"


def test_values_stand_as_literals_where_spark_binds_none() -> None:
    text = "SELECT array_contains(:days, day), :days_2, ':no' WHERE a = :days"
    assert bound(text, {"days": [date(2026, 1, 2), None]}) == (
        "SELECT array_contains(ARRAY(DATE '2026-01-02', NULL), day), :days_2, ':no' "
        "WHERE a = ARRAY(DATE '2026-01-02', NULL)"
    )
    with pytest.raises(TypeError, match="no SQL literal for set"):
        bound(":a", {"a": {1}})
