"""Gold as of a time, from Delta's history.

    versions     1      2      3      4      5
    as_of      10:00  10:05  10:05  10:10  10:15       (3: late events, at the same as_of)
    at 10:07                  ▲                        the latest as_of at or before it

A version that a refresh committed says in its ledger at which time its windows end. The rows are
those that readers had then: what came later is not in them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.config.settings import Clock, iso
from tidemill.errors import LakeError, UsageError
from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger

_MISSING = ("FILE_NOT_EXIST", "FILE_NOT_FOUND", "PathNotFound", "FileNotFoundException")


@dataclass(frozen=True)
class GoldVersion:
    """A version of gold that a refresh committed: the end of its windows, the newest batch that it
    counts, its whole ledger and Delta's metrics of the commit."""

    version: int
    as_of: datetime
    batch: int
    committed_at: datetime
    ledger: Mapping[str, Any]
    metrics: Mapping[str, str]


@dataclass(frozen=True)
class Status:
    """Where a view's gold table stands.

    `as_of` is the end of its windows, None before the first refresh, and `age_seconds` how long ago
    that is; `batch` the newest batch it counts, -1 for none. `recompute_reason` says why the next
    refresh must recompute it, None where it need not.
    """

    view: str
    as_of: datetime | None
    age_seconds: float | None
    batch: int
    gold_version: int
    recompute_reason: str | None


def status(lake: Lake, view: FeatureView, clock: Clock) -> Status:
    """Return where the view's gold table stands, by its own ledger."""
    state = lake.gold_state(view)
    age = (clock.now() - state.as_of).total_seconds() if state.as_of else None
    return Status(view.name, state.as_of, age, state.batch, state.version, state.recompute_reason)


def versions(lake: Lake, view: FeatureView) -> list[GoldVersion]:
    """Return the versions of gold that refreshes committed and the log still has, newest first."""
    return [
        GoldVersion(
            commit.version,
            ledger.instant(commit.ledger["as_of"]),
            int(commit.ledger["batch"]),
            commit.at,
            commit.ledger,
            commit.metrics,
        )
        for commit in lake.commits(lake.tables.of(view).gold.name, None)
        if commit.ledger and commit.ledger.get("as_of")
    ]


def version_at(lake: Lake, view: FeatureView, at: datetime) -> GoldVersion:
    """Return the version of gold that was the newest at the time: of those with the latest as_of at
    or before it the last one.

    UsageError for a time after gold's as_of, and for one before the first refresh; LakeError for
    one that the log no longer reaches.
    """
    name = lake.tables.of(view).gold.name
    history = versions(lake, view)
    if not history:
        raise UsageError("was never refreshed", where=name, expected="a refresh, then a time")
    newest = history[0].as_of
    if at > newest:
        message = f"{iso(at)} is after the newest as_of"
        raise UsageError(message, where=name, expected=f"{iso(newest)} or earlier")
    known = [one for one in history if one.as_of <= at]
    if known:
        return max(known, key=lambda one: (one.as_of, one.version))
    first = min(one.as_of for one in history)
    oldest = lake.commits(name, None)[-1].version
    if oldest == 0:
        message = f"{iso(at)} is before the first refresh"
        raise UsageError(message, where=name, expected=f"{iso(first)} or later")
    message = f"the history of {iso(at)} is gone: the log begins with version {oldest}"
    raise LakeError(message, where=name, expected=f"{iso(first)} or later")


def rows_at(lake: Lake, view: FeatureView, at: datetime) -> DataFrame:
    """Return the rows of gold as of a time, with the columns that gold had then.

    Refuses what `version_at` refuses, and a version whose files VACUUM has deleted (LakeError).
    In a folder the files are looked for; a catalog's are read once through.
    """
    name, gold = lake.tables.of(view).gold.name, version_at(lake, view, at)
    try:
        rows = lake.spark.read.option("versionAsOf", gold.version).table(name)
        files = rows.inputFiles()
    except AnalysisException as error:
        raise _gone(name, gold, str(error).splitlines()[0]) from error
    if lake.place.folder is None:
        _read_through(rows, name, gold)
    elif any(not Path(unquote(urlparse(file).path)).exists() for file in files):
        raise _gone(name, gold, "VACUUM has deleted files of it")
    return rows


def _read_through(rows: DataFrame, name: str, gold: GoldVersion) -> None:
    """Read a column of every file: the log alone would answer a count of rows."""
    try:
        rows.agg(F.bit_xor(F.xxhash64("updated_at"))).collect()
    except Exception as error:  # Spark 4.2 leaves this one as py4j has it
        if not any(word in str(error) for word in _MISSING):
            raise
        raise _gone(name, gold, "VACUUM has deleted files of it") from error


def _gone(name: str, gold: GoldVersion, why: str) -> LakeError:
    return LakeError(
        f"version {gold.version}, as of {iso(gold.as_of)}, cannot be read any more: {why}",
        where=name,
        expected="a later time; files are kept for the pipeline's maintenance: retention",
    )
