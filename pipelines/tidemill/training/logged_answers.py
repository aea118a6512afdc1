"""The response log of `tidemill serve`, and what gold's history says of its answers.

A line is what was answered of one view; see `online.server.response_log`. Rows that were ahead of
their view's state, in the middle of a publish, do not say of which version they are.
"""

from __future__ import annotations

import heapq
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F

from tidemill.config.settings import parse_time
from tidemill.errors import InputError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.online import packing
from tidemill.online.answers import wire_format
from tidemill.pipeline.event_slices import expected_values
from tidemill.training.answered import answered


@dataclass(frozen=True)
class LoggedAnswer:
    """The row of one key in an answer: from which version of gold, or from slices through which
    batch of clean, and its values as JSON."""

    key: tuple[Any, ...]
    gold_version: int
    found: bool
    values: Mapping[str, Any]
    as_of: datetime
    through: int | None = None


@dataclass(frozen=True)
class LoggedAnswers:
    """Rows that were answered, and how many of the log were ahead of their state."""

    answers: Sequence[LoggedAnswer]
    ahead: int


def read(path: Path, view: FeatureView, sample: int) -> LoggedAnswers:
    """Return at most so many rows of the log and its older files, drawn by a hash of each line.

    InputError for a file that is not there, or is no log; a last line that was cut off is passed
    over.
    """
    ahead = 0
    drawn: list[tuple[int, int, LoggedAnswer]] = []
    for number, (line, entry) in enumerate(_entries(path, view)):
        if entry.get("as_of", line["as_of"]) != line["as_of"]:
            ahead += 1
            continue
        one = LoggedAnswer(
            _key(entry["key"], view),
            line["gold_version"],
            entry["found"],
            entry["values"],
            parse_time(line["as_of"]),
            line.get("through"),
        )
        rank = zlib.crc32(f"{number} {one.key} {one.gold_version}".encode())
        heapq.heappush(drawn, (-rank, number, one))
        if len(drawn) > sample:
            heapq.heappop(drawn)
    return LoggedAnswers([one for _, _, one in sorted(drawn, key=lambda each: each[1])], ahead)


def expected(
    lake: Lake, view: FeatureView, answers: Sequence[LoggedAnswer]
) -> dict[int, dict[str, Any] | None]:
    """Return, by the place of an answer, the features that gold's history has of its key at its
    version, or the events by its batch for one from slices, None for a key that there is not;
    nothing where the history knows no such version."""
    sliced = {
        place: (one.key, one.through, one.as_of)
        for place, one in enumerate(answers)
        if one.through is not None
    }
    from_gold = {place: one for place, one in enumerate(answers) if one.through is None}
    of_slices = expected_values.expected(lake, view, sliced)
    return {**of_slices, **_from_gold(lake, view, from_gold)}


def _from_gold(
    lake: Lake, view: FeatureView, answers: Mapping[int, LoggedAnswer]
) -> dict[int, dict[str, Any] | None]:
    history = answered(lake, view)
    if history is None or not answers:
        return {}
    known = {row["version"] for row in history.versions.select("version").distinct().collect()}
    names = [column.name for column in view.shown]
    schema = ", ".join(f"`{key}` {view.types[key]}" for key in view.keys)
    rows = [(*one.key, place, one.gold_version) for place, one in answers.items()]
    asked = lake.spark.createDataFrame(rows, f"{schema}, __place INT, __version BIGINT")
    newest = F.max_by(F.struct("kind", *names), "version").alias("newest")
    of_keys = history.keys.join(F.broadcast(asked), [*view.keys])
    found = of_keys.where("version <= __version").groupBy("__place").agg(newest)
    values = {
        row["__place"]: None if row["newest"]["kind"] == "gone" else row["newest"]
        for row in found.toArrow().to_pylist()
    }
    return {
        place: _features(values.get(place), names)
        for place, one in answers.items()
        if one.gold_version in known
    }


def as_json(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return features as an answer has them in JSON."""
    plain = packing.unpack(packing.pack(dict(values)))
    said: dict[str, Any] = json.loads(wire_format.as_json(plain))
    return said


def _features(newest: Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, Any] | None:
    return None if newest is None else {name: newest[name] for name in names}


def _entries(path: Path, view: FeatureView) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each row of the view's answers, with its line, the oldest file first."""
    numbered = sorted(
        (file for file in path.parent.glob(f"{path.name}.*") if file.suffix[1:].isdigit()),
        key=lambda file: -int(file.suffix[1:]),
    )
    if not path.is_file():
        raise InputError("there is no such file", where=str(path), expected="a response log")
    for file in (*numbered, path):
        with file.open("rb") as lines:
            for number, text in enumerate(lines, 1):
                if not text.endswith(b"\n"):
                    continue
                line = _line(text, file, number)
                if line["view"] == view.name:
                    yield from ((line, entry) for entry in line["rows"])


def _line(text: bytes, file: Path, number: int) -> dict[str, Any]:
    try:
        line = json.loads(text)
        if {"view", "gold_version", "as_of", "rows"} <= line.keys():
            return dict(line)
    except (ValueError, AttributeError):
        pass
    where, expected = f"{file}:{number}", "the file of `tidemill serve --response-log`"
    raise InputError("is no line of a response log", where=where, expected=expected)


def _key(said: Any, view: FeatureView) -> tuple[Any, ...]:
    return tuple(said[name] for name in view.keys) if isinstance(said, dict) else tuple(said)
