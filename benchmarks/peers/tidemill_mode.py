"""Tidemill itself, from events to committed gold: `--mode recompute`, `incremental` or `stateful`.

    recompute, incremental   pipeline.feature_batch: buckets appended, gold refreshed by MERGE
    stateful                 the same function appends buckets and arrivals; the query that keeps
                             the state runs all the time, as in `tidemill run`, and a tick ends
                             when it has taken everything

As in benchmarks/tick.py a batch begins as a frame of clean events: land and clean are left out, as
they are of every peer. Clock: the events'. The result is the Delta table; reading it for the
comparison is not measured.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import peer
import pyarrow as pa
import work
from pyspark.sql.streaming.query import StreamingQuery
from tick import COLUMNS, GOLD

from tidemill.config.pipeline_file import load
from tidemill.config.settings import Clock, Place
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import ledger
from tidemill.lake.open import open_for_writing
from tidemill.lake.session.session import session
from tidemill.pipeline.queries import Pipeline
from tidemill.pipeline.steps import feature_step
from tidemill.sources.files.source import Files

MODES = {
    "recompute": {"refresh": "recompute"},
    "incremental": {"refresh": "incremental"},
    "stateful": {"engine": "stateful"},
}
AT_ONCE = {"processingTime": "0 seconds"}


@dataclass
class Mode:
    """A lake and, for the stateful engine, the query that keeps the state."""

    lake: Lake
    folder: Path
    events: Path
    states: list[StreamingQuery] = field(default_factory=list)

    def bring(self, batch: int) -> dict[str, Any]:
        before = work.so_far(self.lake.spark, self.folder)
        frame = self.lake.spark.read.parquet(f"{self.events}/{batch}.parquet")
        feature_step.feature_batch(frame, batch, lake=self.lake, clock=Clock(), follows="event")
        if self.lake.pipeline.engine == "stateful":
            self._state()
        return work.since(self.lake.spark, self.folder, before)

    def _state(self) -> None:
        """Let the state take what arrived; its query is started when the first batch is there."""
        if not self.states:
            running = Pipeline(self.lake, Files(Path()), Clock(), "event")
            running.claim(list(running.states))
            self.states = [running.start(name, AT_ONCE) for name in running.states]
        for query in self.states:
            query.processAllAvailable()

    def result(self, batch: int) -> pa.Table:
        told = ledger.commits(self.lake.spark, GOLD, 1)[0].ledger
        assert told is not None and told["batch"] == batch, "gold holds the batch"
        return self.lake.spark.table(GOLD).select("profile_id", "gti", *COLUMNS).toArrow()


def main() -> None:
    options = peer.arguments(__doc__ or "")
    options.add_argument("--mode", choices=MODES, required=True, help="how gold is refreshed")
    asked = options.parse_args()
    definition = load("engagement").overridden(MODES[asked.mode])
    with tempfile.TemporaryDirectory(prefix="tidemill-peers-") as folder:
        lake = open_for_writing(session(), Place(Path(folder)), definition)
        mode = Mode(lake, Path(folder), asked.events)
        peer.run(mode, asked.ticks, asked.out)
        for query in mode.states:
            query.stop()
        lake.spark.stop()


if __name__ == "__main__":
    main()
