"""The pipelines that a lake holds, found from its tables alone: no pipeline file, no lock.

    a folder     <root>/<pipeline>_bronze, <root>/<view>_features ...   the logs' files, no Spark
    a catalog    the schema's tables and their properties               by queries

A table says whose it is: in its properties, and in the transaction of each of its commits.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tidemill.config.dataflow import STREAM
from tidemill.config.settings import Place
from tidemill.lake.batches import Flow, Reader
from tidemill.lake.catalog import checkpoint_root, table_names
from tidemill.lake.commits import ledger, metadata
from tidemill.lake.commits.ledger import RECENT, Commit
from tidemill.lake.schema.table_properties import OWNER


@dataclass(frozen=True)
class Folder:
    """Reads the commits of a folder's tables."""

    root: Path

    def commits(self, table: str, limit: int | None = RECENT) -> list[Commit]:
        """Return the table's newest commits."""
        return ledger.of_log(self._log(table), limit)

    def is_as_made(self, table: str) -> bool:
        """Return whether nothing was committed since the table was made."""
        return ledger.newest_version(self._log(table)) <= 0

    def names(self) -> list[str]:
        """Return the names of the tables."""
        return table_names(self.root)

    def owner(self, table: str) -> str | None:
        """Return the pipeline that a table says it belongs to, in one of its newest commits."""
        log = self._log(table)
        newest = ledger.newest_version(log)
        for version in range(newest, max(newest - RECENT, -1), -1):
            if name := _owner(log / f"{version:020}.json"):
                return name
        return None

    def _log(self, table: str) -> Path:
        return self.root / table / "_delta_log"


@dataclass(frozen=True)
class Schema:
    """Reads the commits of the tables in the session's current schema."""

    spark: SparkSession

    def commits(self, table: str, limit: int | None = RECENT) -> list[Commit]:
        """Return the table's newest commits."""
        return ledger.commits(self.spark, table, limit)

    def is_as_made(self, table: str) -> bool:
        """Say nothing: only a query could tell."""
        return False

    def names(self) -> list[str]:
        """Return the names of the tables, and of views, which end otherwise."""
        rows = self.spark.sql("SHOW TABLES").collect()
        return sorted(row["tableName"] for row in rows if not row["isTemporary"])

    def owner(self, table: str) -> str | None:
        """Return the pipeline that a table says it belongs to."""
        return metadata.of_session(self.spark, table).properties.get(OWNER)


def flows(reader: Folder | Schema, place: Place) -> list[Flow]:
    """Return the pipelines of a lake, by name."""
    return _flows(reader.names(), reader.owner, reader, checkpoint_root(place))


def _flows(
    names: Iterable[str], owner: Callable[[str], str | None], reader: Reader, checkpoints: Path
) -> list[Flow]:
    table_names = set(names)
    pipelines = [n for n in _stems(table_names, "_bronze") if f"{n}_events" in table_names]
    views = [n for n in _stems(table_names, "_features") if f"{n}_buckets" in table_names]
    owners = {view: owner(f"{view}_features") for view in views}
    dimensions = [n for n in _stems(table_names, "_dimension") if f"{n}_bronze" in table_names]
    keepers = {name: owner(f"{name}_dimension") for name in dimensions}
    return [
        Flow(
            name,
            _of(owners, name),
            reader,
            checkpoints,
            _of(keepers, name),
            _streams(name, table_names, checkpoints),
        )
        for name in pipelines
    ]


def _streams(pipeline: str, names: Collection[str], checkpoints: Path) -> tuple[str, ...]:
    """Return the pipeline's streams that have begun: by their checkpoints, as the name of a
    stream's table is the stream's alone."""
    begin = f"{pipeline}_{STREAM.checkpoint.format(stream='')}"
    begun = sorted(path.name.removeprefix(begin) for path in checkpoints.glob(f"{begin}*"))
    return tuple(name for name in begun if name in names)


def _of(owners: Mapping[str, str | None], pipeline: str) -> tuple[str, ...]:
    """Return the names that a pipeline owns."""
    return tuple(name for name, owner in owners.items() if owner == pipeline)


def _stems(names: Iterable[str], end: str) -> list[str]:
    return sorted(name.removesuffix(end) for name in names if name.endswith(end))


def _owner(commit: Path) -> str | None:
    try:
        with commit.open(encoding="utf-8") as lines:
            for line in lines:
                action = json.loads(line)
                app, _, rest = action.get("txn", {}).get("appId", "").partition(":")
                if app == "tidemill":
                    return str(rest.partition(":")[0])
                configuration = action.get("metaData", {}).get("configuration", {})
                if OWNER in configuration:
                    return str(configuration[OWNER])
    except FileNotFoundError:
        return None
    return None
