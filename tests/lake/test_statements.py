"""The statements of `sql/`: each is finished for a view, parses, and does what its cases show.

A case is a text in `tests/lake/statements`, named for its statement:

    statement: merge                  then `view`, `when_empty`, `by_hours`, and its parameters
    == plays_changes                  a table that it reads
    == expected                       the rows that it yields, in any order unless it has its own
    == expected plays_features        what a table that it writes to holds afterwards

The views of the cases are small, so that a row can be read:

    plays       keys profile_id, gti; count().by("kind", ["play", "stop"]).over("1h", "10m")
    spent       key profile_id; the sum and the maximum of amount over 1h: a sum may overflow
    engagement  as shipped; 1h, 12h and 1d, longer than an hour
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from itertools import takewhile
from pathlib import Path
from string import Template

import pytest
import sqlglot
from pyspark.sql import DataFrame, SparkSession

from cases import CASES, SHIPPED, Case, frame, plays
from texttable import TextTable
from tidemill.features import FeatureView
from tidemill.lake.parameters import ask, bound
from tidemill.lake.statements import names, statement


@contextmanager
def _given(spark: SparkSession, case: Case, folder: Path) -> Iterator[dict[str, DataFrame]]:
    """Yield the case's tables; one that is written to is a Delta table until the end."""
    frames = {name: frame(spark, table, case.view) for name, table in case.inputs.items()}
    try:
        for name in case.written:
            path = str(folder / name)
            frames.pop(name).write.format("delta").option("path", path).saveAsTable(name)
        yield frames
    finally:
        for name in case.written:
            spark.sql(f"DROP TABLE IF EXISTS {name}")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_a_case_yields_what_it_says(apart: SparkSession, path: Path, tmp_path: Path) -> None:
    case = Case.read(path)
    with _given(apart, case, tmp_path) as frames:
        yielded = _cells(ask(apart, case.text, case.parameters, frames))
        written = {name: _cells(apart.table(name)) for name in case.written}
    in_order = "\nORDER BY" in case.text
    _compare(path.name, yielded, case.expected, in_order)
    for name, rows in written.items():
        _compare(f"{path.name}, {name}", rows, case.written[name])


def _cells(frame: DataFrame) -> TextTable:
    return TextTable.of(frame.columns, frame.collect())


def _compare(title: str, rows: TextTable, expected: TextTable, in_order: bool = False) -> None:
    assert rows.columns == expected.columns
    if not in_order:
        rows, expected = rows.sorted(), expected.sorted()
    difference = rows.differences(expected)
    assert not difference, f"{title}:\n{difference}"


def test_every_statement_has_a_case() -> None:
    apart = {"adhoc", "functions", "views"}  # their tests are in tests/query and tests/features
    needed = {name for name, path in names().items() if path.parent.name not in apart}
    missing = needed - {Case.read(path).words["statement"] for path in CASES}
    assert not missing, f"no case in tests/lake/statements: {sorted(missing)}"


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
