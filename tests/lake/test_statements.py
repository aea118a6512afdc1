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
from dataclasses import dataclass
from datetime import date, datetime, timezone
from itertools import takewhile
from pathlib import Path
from string import Template
from typing import Any

import pytest
import sqlglot
from pyspark.sql import DataFrame, SparkSession

from texttable import TextTable
from tidemill.config.pipeline_file import load
from tidemill.features import FeatureView, count, max_, sum_
from tidemill.lake import tables
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


def spent(when_empty: str = "zero") -> FeatureView:
    return FeatureView(
        name="spent",
        keys=["profile_id"],
        event_time="event_timestamp",
        event_schema={"profile_id": "string", "amount": "bigint"},
        when_empty=when_empty,
        features=[sum_("amount").over("1h"), max_("amount").over("1h")],
    )


@dataclass(frozen=True)
class Case:
    """A case's file: its words, the tables it gives, the rows it expects, the tables it writes."""

    words: dict[str, str]
    inputs: dict[str, TextTable]
    expected: TextTable
    written: dict[str, TextTable]

    @classmethod
    def read(cls, path: Path) -> Case:
        text = "\n".join(
            line for line in path.read_text(encoding="utf-8").splitlines() if line[:1] != "#"
        )
        head, *parts = re.split(r"^== (\w+(?: \w+)?)\n", text, flags=re.MULTILINE)
        words = dict(line.split(": ", 1) for line in head.splitlines() if line.strip())
        bodies = zip(parts[::2], parts[1::2], strict=True)
        parsed = {title: TextTable.parse(body) for title, body in bodies}
        expected = parsed.pop("expected")
        written = {title.split()[1]: parsed.pop(title) for title in [*parsed] if " " in title}
        return cls(words, parsed, expected, written)

    @property
    def view(self) -> FeatureView:
        name, when_empty = self.words.get("view", "plays"), self.words.get("when_empty", "zero")
        return {"plays": plays(when_empty), "spent": spent(when_empty), "engagement": SHIPPED}[name]

    @property
    def text(self) -> str:
        by_hours = self.words.get("by_hours") == "true"
        name, source = self.words["statement"], self.words.get("source")
        return statement(name, self.view, by_hours=by_hours, source=source)

    @property
    def parameters(self) -> dict[str, Any]:
        given = {name: text for name, text in self.words.items() if name not in OF_THE_TEXT}
        return {name: _parameter(name, text) for name, text in given.items()}


OF_THE_TEXT = ("statement", "view", "when_empty", "by_hours", "source")


def _parameter(name: str, text: str) -> Any:
    """The value of a parameter; KeyError for a name that no statement has."""
    if name.startswith("key_") or name in ("reason", "prefix", "record_id"):
        return text
    times = dict.fromkeys(("as_of", "as_of_before", "low", "high", "before", "since"), _time)
    flags = dict.fromkeys(("ticks", "whole"), lambda text: text == "true")
    numbers = dict.fromkeys(("batch", "batch_before", "hours", "sample", "prefix_length"), int)
    others = {
        "table": str,
        "days": _days,
        **dict.fromkeys(("since_day", "first_day", "last_day"), date.fromisoformat),
    }
    return {**times, **flags, **numbers, **others}[name](text)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


FEED = {"_commit_version": "BIGINT"}
READERS = {
    "STRING": str,
    "INT": int,
    "BIGINT": int,
    "TIMESTAMP": _time,
    "DATE": date.fromisoformat,
    "BOOLEAN": lambda text: text == "true",
    "ARRAY<STRING>": lambda text: text.split(", "),
}


def _days(text: str) -> list[date]:
    return [date.fromisoformat(day) for day in text.split(", ")]


def _types(view: FeatureView) -> dict[str, str]:
    """The type of each column that a case may give, from the tables' declarations."""
    made, of_all = view_tables(view), tables.of(load("engagement"))
    tables_ = ("bronze", "quarantine", "events", "replays", "batches")
    declared = (made.buckets, made.hours, made.gold, *(getattr(of_all, n) for n in tables_))
    events = {name: type_.upper() for name, type_ in view.event_schema.items()}
    columns = {column.name: column.type for table in declared for column in table.columns}
    others = {"__action": "STRING", "replayed": "BOOLEAN", **FEED}
    return {**columns, **events, **others}


def _frame(spark: SparkSession, table: TextTable, view: FeatureView) -> DataFrame:
    types = _types(view)
    readers = [READERS[types[name]] for name in table.columns]
    rows = [
        [None if cell == "null" else read(cell) for read, cell in zip(readers, row, strict=True)]
        for row in table.rows
    ]
    schema = ", ".join(f"{name} {types[name]}" for name in table.columns)
    return spark.createDataFrame(rows, schema)


@contextmanager
def _given(spark: SparkSession, case: Case, folder: Path) -> Iterator[dict[str, DataFrame]]:
    """Yield the case's tables; one that is written to is a Delta table until the end."""
    frames = {name: _frame(spark, table, case.view) for name, table in case.inputs.items()}
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
