"""The cases of statements, which are texts in `tests/lake/statements` (see `test_statements`)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from texttable import TextTable
from tidemill.config.pipeline_file import load
from tidemill.features import FeatureView, count, max_, sum_
from tidemill.lake import tables
from tidemill.lake.statements import statement
from tidemill.lake.tables.view_tables import view_tables

CASES = sorted((Path(__file__).parents[1] / "lake" / "statements").glob("*.txt"))
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
    named = ("as_of", "as_of_before", "low", "high", "before", "since", "first", "end", "start")
    times = dict.fromkeys(named, _time)
    flags = dict.fromkeys(("ticks", "whole"), lambda text: text == "true")
    counted = ("batch", "batch_before", "hours", "sample", "prefix_length", "look", "oldest")
    numbers = dict.fromkeys((*counted, "seconds", "most"), int)
    others = {
        "table": str,
        "generation": str,
        "pipeline": str,
        "days": _days,
        **dict.fromkeys(("since_day", "first_day", "last_day"), date.fromisoformat),
    }
    return {**times, **flags, **numbers, **others}[name](text)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc)


JUDGED = {"cooldown": "BIGINT", "fires": "BOOLEAN", "ends": "BOOLEAN"}
FEED = {"_commit_version": "BIGINT", "_change_type": "STRING"}
OF_SPINES = {
    **dict.fromkeys(("__edge", "__answered", "__commit", "__key"), "BIGINT"),
    **dict.fromkeys(("__amount_sum_1h", "__amount_max_1h"), "BIGINT"),
    "__in_range": "BOOLEAN",
}
READERS = {
    "STRING": str,
    "INT": int,
    "BIGINT": int,
    "DOUBLE": float,
    "TIMESTAMP": _time,
    "DATE": date.fromisoformat,
    "BOOLEAN": lambda text: text == "true",
    "ARRAY<STRING>": lambda text: text.split(", "),
}


def _days(text: str) -> list[date]:
    return [date.fromisoformat(day) for day in text.split(", ")]


def types_of(view: FeatureView) -> dict[str, str]:
    """The type of each column that a case may give, from the tables' declarations."""
    made, of_all = view_tables(view), tables.of(load("engagement"))
    tables_ = (
        "bronze",
        "quarantine",
        "events",
        "replays",
        "batches",
        "profiles",
        "quality",
        "alerts",
    )
    declared = (
        made.buckets,
        made.hours,
        made.gold,
        made.history,
        made.days,
        *(getattr(of_all, n) for n in tables_),
    )
    events = {name: type_.upper() for name, type_ in view.event_schema.items()}
    columns = {column.name: column.type for table in declared for column in table.columns}
    others = {"__action": "STRING", "replayed": "BOOLEAN", **FEED, **JUDGED, **OF_SPINES}
    return {**columns, **events, **others}


def frame(spark: SparkSession, table: TextTable, view: FeatureView) -> DataFrame:
    types = types_of(view)
    readers = [READERS[types[name]] for name in table.columns]
    rows = [
        [None if cell == "null" else read(cell) for read, cell in zip(readers, row, strict=True)]
        for row in table.rows
    ]
    schema = ", ".join(f"{name} {types[name]}" for name in table.columns)
    return spark.createDataFrame(rows, schema)
