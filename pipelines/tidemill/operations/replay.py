"""Repaired records sent through again, each exactly once.

    FILE, or ids and --set ──► repaired ──judge──► still refused: left as they are
                                              └──► <pipeline>_replays ──► bronze ──► clean ...

A repaired record's id follows from the refused one's, and it is brought into bronze by a MERGE on
that id: a second call, a crash after any step or two calls at once land it once. It keeps its
original's position and `ingested_at`, so that its age is judged as it was when it came.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock
from tidemill.errors import InputError, UsageError
from tidemill.features.suggestions import did_you_mean
from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.commits.races import past_others
from tidemill.lake.parameters import ask
from tidemill.lake.schema import creation
from tidemill.lake.statements import statement
from tidemill.pipeline.silver import replays, validation

SHOWN = 10  # ids that a message names
WORDS = {"record_id", "raw_payload"}
LEFT_OUT = {"reasons"}  # that an export has for its reader


@dataclass(frozen=True)
class Repaired:
    """A refused record's id, and what its payload should have been."""

    record_id: str
    raw_payload: str


def from_file(path: Path) -> list[Repaired]:
    """Return the repaired records of a file of JSON lines: `record_id` and `raw_payload`, a text or
    the object itself."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", where=str(path)) from error
    records = [_read(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]
    _refuse_twice([one.record_id for one in records], str(path))
    return records


def _read(line: str, where: str) -> Repaired:
    expected = '{"record_id": "...", "raw_payload": {...}}'
    try:
        said = json.loads(line, object_pairs_hook=_once, parse_float=_to_the_digit)
    except ValueError as error:
        raise InputError(f"no JSON: {error}", where=where, expected=expected) from error
    if not isinstance(said, dict) or not WORDS <= set(said) <= WORDS | LEFT_OUT:
        raise InputError("is no repaired record", where=where, expected=expected)
    record_id, payload = said["record_id"], said["raw_payload"]
    if not isinstance(record_id, str) or not isinstance(payload, str | dict):
        raise InputError("is no repaired record", where=where, expected=expected)
    text = payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    return Repaired(record_id, text)


def _refuse_twice(ids: Sequence[str], where: str) -> None:
    if twice := next((one for one in ids if ids.count(one) > 1), None):
        raise InputError(
            f"record {twice!r} stands twice", where=where, expected="one line for each"
        )


def by_ids(lake: Lake, ids: Sequence[str], said: Mapping[str, str]) -> list[Repaired]:
    """Return refused records as they are, but for the fields that are said."""
    fields = {name: _typed(lake.pipeline, name, text) for name, text in said.items()}
    rows = _refused(lake, ids).select("record_id", "raw_payload").collect()
    payloads = {row["record_id"]: row["raw_payload"] for row in rows}
    _refuse_unknown([one for one in ids if one not in payloads])
    return [Repaired(one, _set(one, payloads[one], fields)) for one in dict.fromkeys(ids)]


def _typed(pipeline: PipelineDefinition, name: str, text: str) -> Any:
    """Return a field's value as JSON has it."""
    view = pipeline.events
    types = {validation.EVENT_ID: "string", **view.event_schema, view.event_time: "string"}
    types = {field: type_ for field, type_ in types.items() if field not in pipeline.enriched}
    if name not in types:
        hint = did_you_mean(name, types)
        raise UsageError(f"unknown field {name!r}{hint}", where="--set", expected="FIELD=VALUE")
    if types[name].startswith("string"):
        return text
    try:
        value = json.loads(text, parse_float=_to_the_digit)
    except ValueError as error:
        raise UsageError(f"{text!r} is no {types[name]}", where=f"--set {name}") from error
    return value


def _set(record_id: str, payload: str | None, fields: Mapping[str, Any]) -> str:
    """Return the payload with other values for some fields; as it is where none is said."""
    if not fields:
        return payload or ""
    try:
        record = json.loads(
            (payload or "").removeprefix("\ufeff"),
            object_pairs_hook=_once,
            parse_float=_to_the_digit,
        )
    except ValueError as error:
        raise _no_object(record_id, str(error)) from error
    if not isinstance(record, dict):
        raise _no_object(record_id, "it is something else")
    return json.dumps({**record, **fields}, ensure_ascii=False)


def _no_object(record_id: str, why: str) -> UsageError:
    return UsageError(
        f"the payload is no JSON object: {why}",
        where=record_id,
        expected="a file with the whole payload: `tidemill quarantine replay PIPELINE FILE`",
    )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a name stands twice in it")
    return fields


def _to_the_digit(text: str) -> float:
    number = float(text)
    if Decimal(repr(number)) != Decimal(text):
        raise ValueError(f"{text} cannot be kept to the digit: write the payload as a text")
    return number


def replay(lake: Lake, repaired: Sequence[Repaired], clock: Clock) -> dict[str, Any]:
    """Send repaired records through again; return how many were landed, how many had been before,
    and those that would be refused again, which are left as they are."""
    rows = _as_bronze(lake, repaired)
    known = _already(lake, [one.record_id for one in repaired])
    new = rows.where(~F.col("record_id").isin([replays.PREFIX + one for one in known]))
    judged = validation.judge(new, lake.pipeline, lake.longer)
    refused = judged.where(F.size("reasons") > 0).select("record_id", "reasons").collect()
    passing = judged.where(F.size("reasons") == 0).select(*rows.columns)
    landed = 0
    if len(repaired) > len(known) + len(refused):
        _mark(lake, passing, clock)
        reach("replay.marked")
        landed = insert(lake, lake.tables.bronze.name, passing)
        reach("replay.landed")
    return {
        "pipeline": lake.pipeline.pipeline,
        "asked": len(repaired),
        "landed": landed,
        "already": len(repaired) - len(refused) - landed,
        "refused": [
            {"record_id": _original(row["record_id"]), "reasons": row["reasons"]} for row in refused
        ],
    }


def _original(replay_id: str) -> str:
    return replay_id.removeprefix(replays.PREFIX)


def _refused(lake: Lake, ids: Sequence[str]) -> DataFrame:
    """Return the rows of quarantine with these ids."""
    asked = lake.spark.createDataFrame([(one,) for one in dict.fromkeys(ids)], "record_id STRING")
    quarantine = lake.spark.table(lake.tables.quarantine.name)
    return quarantine.join(F.broadcast(asked), "record_id", "left_semi")


def _refuse_unknown(ids: Sequence[str]) -> None:
    if ids:
        more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
        raise UsageError(
            f"not in quarantine: {', '.join(ids[:SHOWN])}{more}",
            where="record_id",
            expected="ids of `tidemill quarantine list`",
        )


def _as_bronze(lake: Lake, repaired: Sequence[Repaired]) -> DataFrame:
    """Return the repaired records as rows of bronze; UsageError for one that was not refused."""
    originals = _refused(lake, [one.record_id for one in repaired]).drop("raw_payload")
    known = {row["record_id"] for row in originals.select("record_id").collect()}
    _refuse_unknown([one.record_id for one in repaired if one.record_id not in known])
    said = lake.spark.createDataFrame(
        [(one.record_id, one.raw_payload) for one in repaired],
        "record_id STRING, raw_payload STRING",
    )
    named = F.concat(F.lit(replays.PREFIX), F.col("record_id"))
    joined = originals.join(said, "record_id").withColumn("record_id", named)
    return joined.select(*lake.tables.bronze.column_names)


def _already(lake: Lake, ids: Sequence[str]) -> set[str]:
    """Return those of the ids whose repaired records are in bronze."""
    if not lake.has(lake.tables.replays.name):
        return set()
    return {row["record_id"] for row in replays.landed(lake).collect()} & set(ids)


def _mark(lake: Lake, rows: DataFrame, clock: Clock) -> None:
    """Name what is about to be landed, so that no rebuild counts its original beside it."""
    creation.ensure(lake, lake.tables.replays)
    marks = rows.select(
        F.expr(f"substring(record_id, {len(replays.PREFIX) + 1})").alias("record_id"),
        F.col("record_id").alias("replay_id"),
        times.at(clock.now()).alias("replayed_at"),
        "ingest_date",
    )
    insert(lake, lake.tables.replays.name, marks)


def insert(lake: Lake, table: str, rows: DataFrame) -> int:
    """Insert the rows whose record_id the table does not have, in one commit, again where another
    commit came first; return how many."""
    days = [row["ingest_date"] for row in rows.select("ingest_date").distinct().collect()]
    text = statement("landed", lake.pipeline.events)
    args = {"table": table, "days": days}
    done = past_others(lambda: ask(lake.spark, text, args, {"landing": rows}).collect()[0])
    return int(done["num_inserted_rows"])
