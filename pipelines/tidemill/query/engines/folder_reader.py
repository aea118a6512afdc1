"""Answers the package's own statements on a folder: by DuckDB where it answers as Spark does.

    explain, reconcile, describe ... ──lake.ask──► FolderReader ──► DuckDB, over `deltalake`
                                                        └─ else ──► Spark, and says why

So `reconcile` is judged by another engine than the one that made the features.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_hex
from typing import Any

from tidemill.lake.parameters import bound, quoted
from tidemill.lake.relations import Answer, Relation, RowReader
from tidemill.query.engines.choice import ASKING_SPARK, Engine, Tell, not_by_duckdb, reason
from tidemill.query.engines.duckdb_engine import DuckDBEngine

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class FolderReader:
    """Asks DuckDB, or Spark where `engine` says so; with `auto` Spark where DuckDB might answer
    otherwise, of which `tell` is told once. `where` is what an error names."""

    root: Path
    engine: Engine
    spark: RowReader
    tell: Tell
    where: str
    _told: set[str] = field(default_factory=set)

    def answer(
        self, text: str, values: Mapping[str, Any], relations: Mapping[str, Relation]
    ) -> Answer:
        """Return what the statement yields; UsageError where DuckDB alone may answer and does
        not."""
        if self.engine == "spark":
            return self.spark.answer(text, values, relations)
        try:
            plain, texts = _set_aside(values)
            records = DuckDBEngine(self.root, (), relations).records(bound(text, plain), texts)
        except (
            Exception
        ) as error:  # DuckDB's and deltalake's, of which each is a reason to ask Spark
            why = reason(error)
            log.info("DuckDB does not answer: %s", error)
            if self.engine == "duckdb":
                raise not_by_duckdb(why, self.where) from error
            if not self._told:
                self._told.add(why)
                self.tell(ASKING_SPARK.format(why))
            return self.spark.answer(text, values, relations)
        return Answer(records, "duckdb")


def _set_aside(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the values with a name in the place of each text that a literal writes otherwise, as
    one with a quote, and those texts by these names."""
    plain, texts = dict(values), {}
    for number, (name, value) in enumerate(values.items()):
        if isinstance(value, str) and quoted(value) != f"'{value}'":
            plain[name] = alias = f"tidemill_text_{number}_{token_hex(8)}"
            texts[alias] = value
    return plain, texts
