"""`tidemill_batches`: what each batch did, kept for as long as anybody wishes to ask.

    ledgers ──batches.since──► rows ──append──► tidemill_batches ──► report, status, SQL
                                 └────────────► Prometheus, the lines of `run`

The pipeline's main thread records them, outside the ticks; a crash loses nothing, as the ledgers
tell it again. Each append is a file, and who reads `<view>_current` opens those of the newest day:
every so many commits of the table they are joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta, timezone
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from tidemill.config.settings import EPOCH
from tidemill.lake import batches
from tidemill.lake.batches import COUNTS, BatchRow, Flow, Versions
from tidemill.lake.catalog import Lake, checkpoint_root
from tidemill.lake.commits import writer
from tidemill.lake.commits.failpoints import reach
from tidemill.lake.commits.races import lost_race
from tidemill.lake.integrity import interrupted_swaps
from tidemill.lake.statements import statement

RECENT = timedelta(days=2)
JOINED_EVERY = 16  # commits of `tidemill_batches`


def flow(lake: Lake) -> Flow:
    """Return the lake's tables by name, read by the lake itself."""
    declared = lake.pipeline
    views, dimensions, streams = (
        tuple(one.name for one in each)
        for each in (declared.views, declared.dimensions, declared.streams)
    )
    checkpoints = checkpoint_root(lake.place)
    return Flow(declared.pipeline, views, lake, checkpoints, dimensions, streams)


def recorded(lake: Lake) -> dict[str, int]:
    """Return, by table, the newest version that `tidemill_batches` tells of; -1 for none. Of a
    table that the last days do not tell of, all days are read."""
    if lake.is_as_made(lake.tables.batches.name):
        return dict.fromkeys(flow(lake).told_by, -1)
    if moved := interrupted_swaps.moved(lake.place, lake.pipeline.pipeline):
        versions = _recorded(lake)
        of_generation = _recorded_of_generation(lake)
        return {n: of_generation[n] if n in moved else version for n, version in versions.items()}
    return _recorded(lake)


def _recorded(lake: Lake) -> dict[str, int]:
    if (said := _said(lake)) is not None:
        return said
    versions = recorded_since(lake, _first_recent())
    return versions if min(versions.values()) >= 0 else recorded_since(lake, EPOCH.date())


def _recorded_of_generation(lake: Lake) -> dict[str, int]:
    """Return what `recorded` does, by the rows of the generation that lives alone: of a table that
    a swap has put in another's place the other's versions say nothing."""
    tells = flow(lake)
    fed = (tells.checkpoint(query).identity() for query, _, _ in tells.ledgers if query.is_fed)
    known = {lake.generation, *(str(identity.get("generation", "")) for identity in fed)}
    rows = of_pipeline(lake).where(F.col("generation").isin([*known]))
    versions = dict.fromkeys(tells.told_by, -1)
    for row in rows.groupBy("query", "view").agg(F.max("version").alias("version")).collect():
        name = tells.table(row["query"], row["view"])
        if name in versions:
            versions[name] = max(versions[name], row["version"])
    return versions


def _said(lake: Lake) -> dict[str, int] | None:
    """Return what the pipeline's newest append says that it has recorded; None where none of the
    newest commits does, or where somebody else changed rows since."""
    for commit in lake.commits(lake.tables.batches.name):
        fields = commit.ledger or {}
        if fields.get("pipeline") == lake.pipeline.pipeline and "recorded" in fields:
            return {name: int(fields["recorded"].get(name, -1)) for name in flow(lake).told_by}
        if commit.moves_data and not commit.ledger:
            return None
    return None


def of_pipeline(lake: Lake) -> DataFrame:
    """Return the pipeline's rows of `tidemill_batches`."""
    rows = lake.spark.table(lake.tables.batches.name)
    return rows.where(F.col("pipeline") == lake.pipeline.pipeline)


def recent(lake: Lake) -> DataFrame:
    """Return the pipeline's rows of the last days: few files, however old the lake is."""
    return of_pipeline(lake).where(F.col("date") >= F.lit(_first_recent()))


def _first_recent() -> date:
    return datetime.now(timezone.utc).date() - RECENT


def recorded_since(lake: Lake, first: date) -> dict[str, int]:
    """Return, by table, the newest version of which a row of that day or later tells."""
    tells, pipeline = flow(lake), lake.pipeline
    versions = dict.fromkeys(tells.told_by, -1)
    text = statement("newest_batches", pipeline.views[0], source=pipeline.pipeline)
    for row in lake.ask(text, {"since_day": first}).rows:
        name = tells.table(row["query"], row["view"])
        if name in versions:
            versions[name] = max(versions[name], row["version"])
    return versions


def since(lake: Lake, after: Versions) -> list[BatchRow]:
    """Return what was committed after the versions given, table by table, oldest first."""
    return batches.since(flow(lake), after)


def seen(lake: Lake, rows: Sequence[BatchRow], before: Versions) -> dict[str, int]:
    """Return the versions up to which `rows` tell, for the next call of `since`."""
    return batches.seen(flow(lake), rows, before)


def record(lake: Lake) -> Versions:
    """Append to `tidemill_batches` what the ledgers tell beyond it, in one commit; return the
    versions up to which it tells."""
    before = recorded(lake)
    rows = since(lake, before)
    versions = seen(lake, rows, before)
    append(lake, rows, versions)
    return versions


def append(lake: Lake, rows: Sequence[BatchRow], versions: Versions | None = None) -> None:
    """Append the rows to `tidemill_batches`, in one commit, which says up to which `versions` the
    table tells then, where the rows are all that ledgers tell; no rows make no commit."""
    if rows:
        table = lake.tables.batches
        schema: StructType = lake.spark.table(table.name).schema
        records = [as_row(lake, row) for row in rows]
        frame = lake.spark.createDataFrame(records, schema).coalesce(1)
        fields = {"generation": lake.generation, "batch": -1, "pipeline": lake.pipeline.pipeline}
        beside = {"recorded": dict(versions)} if versions is not None else {}
        writer.write(frame, table.name, {**fields, **beside})
        if versions is not None and interrupted_swaps.moved(lake.place, lake.pipeline.pipeline):
            interrupted_swaps.keep(lake.place, lake.pipeline.pipeline, None)
        _join_files(lake, max(record["date"] for record in records))
    reach("batches.recorded")


def _join_files(lake: Lake, day: date) -> None:
    """Make one file of the day's at every sixteenth version of the table, where the lake is a
    folder; in a catalog maintenance does. Another process's commit may come first, or take that
    version: then they are joined the next time."""
    table = lake.tables.batches.name
    version = lake.newest_version(table)
    if version and version % JOINED_EVERY == 0:
        try:
            lake.spark.sql(f"OPTIMIZE {table} WHERE date = '{day}'").collect()
        except PySparkException as error:
            if not lost_race(error):
                raise


def as_row(lake: Lake, row: BatchRow) -> dict[str, Any]:
    """Return the row as the table holds it, by column."""
    names = (column.name for column in lake.tables.batches.columns if hasattr(row, column.name))
    return {
        **{name: getattr(row, name) for name in names},
        **{name: row.counts.get(name) for name in COUNTS},
        "pipeline": lake.pipeline.pipeline,
        "seconds": {name: float(value) for name, value in row.seconds.items()},
        "date": row.committed_at.date(),
    }
