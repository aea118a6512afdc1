"""DuckDB: every feature again from all events so far, on one thread.

No state is kept from tick to tick: each reads all Parquet files and replaces a table in memory.
It is the limit of the machine for a result that only its own process sees.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import peer
import pyarrow as pa
from tick import wanted


@dataclass
class Full:
    """A table in memory, replaced at every tick."""

    events: Path
    own: duckdb.DuckDBPyConnection = field(
        default_factory=lambda: duckdb.connect(config={"threads": 1})
    )

    def bring(self, batch: int) -> dict[str, Any]:
        self.own.execute(f"CREATE OR REPLACE TABLE features AS {wanted(self.events, batch)}")
        return {}

    def result(self, batch: int) -> pa.Table:
        return self.own.sql("FROM features").to_arrow_table()


def main() -> None:
    asked = peer.arguments(__doc__ or "").parse_args()
    peer.run(Full(asked.events), asked.ticks, asked.out)


if __name__ == "__main__":
    main()
