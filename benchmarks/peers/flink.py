"""Flink SQL: one streaming job with three sliding windows (HOP), each a minute further.

    CSV ──source, watched──► HOP 1h, 12h, 1d by key ──end of each minute──► files by window_end
                                                                            and their _SUCCESS

Of what Flink's SQL has, HOP is the nearest. It cuts time into slices of a minute, counts an event
once, in its slice, and puts slices together when the watermark passes a window's end; a late event
is dropped only when no later window holds it. OVER windows end at each event, not at one as_of for
all keys, and say nothing of a key without events; GROUP BY with a moving bound is not brought up to
date when the bound moves; CUMULATE begins again at its window's start.

What the comparison needs and a plain job does not have: a tick's file ends with a row without a key
that moves the watermark to the end of the newest minute. Without it that minute's windows would be
told when an event of the next minute comes.

The result is a table in files, as a Flink job leaves it for others: a row per key and length for
every minute, whole when `_SUCCESS` is there, which is written with a checkpoint, every 200 ms. Also
in the time: up to 50 ms until a new file is seen. Not in it: making CSV of the Parquet files (no
Parquet in PyFlink's own jars), and putting a key's three rows into one for the comparison. One
slot, a mini cluster in one JVM, state on its heap. PyFlink lives in an environment of its own.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import peer
import psutil
import pyarrow as pa
from tick import TYPES, WINDOWS

REQUIRED = ("apache-flink==2.3.0",)
COLUMNS = ("profile_id", "gti", "length", *(f"{kind}_count" for kind in TYPES))
STAMP = "%Y-%m-%d %H:%M:%S"
MINUTE = timedelta(minutes=1)
PATIENCE = 600  # seconds for one tick


@dataclass
class Flink:
    """A job that runs, the folder it watches and the folder it fills."""

    folder: Path
    ends: list[datetime]  # as_of after each batch
    job: subprocess.Popen[str]

    def bring(self, batch: int) -> dict[str, Any]:
        os.link(self.folder / "ready" / f"{batch}.csv", self.folder / "in" / f"{batch}.csv")
        done, until = self.written(batch) / "_SUCCESS", time.monotonic() + PATIENCE
        while not done.exists():
            if self.job.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"tick {batch}: Flink ended, or {done} did not come")
            time.sleep(0.005)
        return {}

    def written(self, batch: int) -> Path:
        """Return the folder of the windows that end with the batch."""
        end = f"{self.ends[batch]:{STAMP}}".replace(":", "%3A")
        return self.folder / "out" / f"window_end={end}"

    def result(self, batch: int) -> pa.Table:
        names = {name: "VARCHAR" if name in COLUMNS[:3] else "BIGINT" for name in COLUMNS}
        counts = ", ".join(
            f"coalesce(sum({kind}_count) FILTER (length = '{window}'), 0)::BIGINT "
            f"AS {kind}_count_{window}"
            for window in WINDOWS
            for kind in TYPES
        )
        files = [str(path) for path in self.written(batch).glob("part-*")]
        read = f"read_csv({files}, header = false, columns = {names})"
        return peer.table(f"SELECT profile_id, gti, {counts} FROM {read} GROUP BY profile_id, gti")


def end_of(events: Path, batch: int) -> datetime:
    """Return the end of the newest minute of the events up to a batch, in UTC."""
    files = [f"{events}/{number}.parquet" for number in range(batch + 1)]
    (end,) = peer.row(
        "SELECT date_trunc('minute', max(event_timestamp) AT TIME ZONE 'UTC') + INTERVAL 1 MINUTE "
        f"FROM read_parquet({files})"
    )
    assert isinstance(end, datetime)
    return end


def write_csv(events: Path, folder: Path, ends: list[datetime]) -> None:
    """Write each batch as CSV, after a row that ends the minute before, and with one that ends its
    own.

    Those rows are a millisecond later than the minute's end: a partition is whole when the
    watermark is past its time. The one before keeps the load from telling the windows of a day.
    """
    for batch, end in enumerate(ends):
        duckdb.execute(
            f"""
            COPY (
              SELECT NULL, NULL, NULL, '{end - MINUTE:{STAMP}}.001' AS event_timestamp
              UNION ALL
              SELECT profile_id, gti, event_type,
                strftime(event_timestamp AT TIME ZONE 'UTC', '{STAMP}.000')
              FROM '{events}/{batch}.parquet'
              UNION ALL
              SELECT NULL, NULL, NULL, '{end:{STAMP}}.001'
            ) TO '{folder}/{batch}.csv' (HEADER false)
            """
        )


def statements(folder: Path) -> list[str]:
    """Return the job's SQL. A filter on window_end would be pushed below the counts, and HOP would
    then copy an event into each of its windows instead of counting it in a slice."""
    counts = ", ".join(
        f"count(*) FILTER (WHERE event_type = '{kind}') AS {kind}_count" for kind in TYPES
    )
    windows = [
        f"SELECT profile_id, gti, '{window}', {counts}, "
        "DATE_FORMAT(window_end, 'yyyy-MM-dd HH:mm:ss')\n"
        "FROM TABLE(HOP(TABLE keyed, DESCRIPTOR(event_timestamp), "
        f"INTERVAL '1' MINUTE, INTERVAL '{minutes // 60}' HOUR))\n"
        "GROUP BY profile_id, gti, window_start, window_end"
        for window, minutes in WINDOWS.items()
    ]
    return [
        f"""CREATE TABLE events (
          profile_id STRING, gti STRING, event_type STRING, event_timestamp TIMESTAMP(3),
          WATERMARK FOR event_timestamp AS event_timestamp
        ) WITH (
          'connector' = 'filesystem', 'path' = 'file://{folder}/in', 'format' = 'csv',
          'csv.null-literal' = '', 'source.monitor-interval' = '50 ms'
        )""",
        "CREATE VIEW keyed AS SELECT * FROM events WHERE profile_id IS NOT NULL",
        f"""CREATE TABLE counts (
          profile_id STRING, gti STRING, `length` STRING,
          {", ".join(f"{kind}_count BIGINT" for kind in TYPES)}, window_end STRING
        ) PARTITIONED BY (window_end) WITH (
          'connector' = 'filesystem', 'path' = 'file://{folder}/out', 'format' = 'csv',
          'partition.time-extractor.timestamp-pattern' = '$window_end',
          'sink.partition-commit.trigger' = 'partition-time',
          'sink.partition-commit.policy.kind' = 'success-file',
          'sink.partition-commit.watermark-time-zone' = 'UTC'
        )""",
        "INSERT INTO counts\n" + "\nUNION ALL\n".join(windows),
    ]


def started(folder: Path) -> subprocess.Popen[str]:
    """Return the process whose job waits for its first file."""
    job = subprocess.Popen(
        [peer.environment("flink", REQUIRED), Path(__file__).with_name("flink_job.py"), folder],
        stdout=subprocess.PIPE,
        env={**os.environ, "JVM_ARGS": "-Xmx2g", "FLINK_LOG_DIR": str(folder / "log")},
        text=True,
    )
    assert job.stdout is not None
    if job.stdout.readline() != "started\n":
        raise SystemExit("Flink did not start")
    return job


def end(job: subprocess.Popen[str]) -> None:
    """End the process and its JVM, which would live on."""
    below = psutil.Process(job.pid).children(recursive=True)
    job.kill()
    for process in below:
        process.kill()
    job.wait()


def main() -> None:
    asked = peer.arguments(__doc__ or "").parse_args()
    with tempfile.TemporaryDirectory(prefix="tidemill-peers-") as name:
        folder = Path(name)
        for each in ("in", "ready", "log"):
            (folder / each).mkdir()
        ends = [end_of(asked.events, batch) for batch in range(asked.ticks + 1)]
        write_csv(asked.events, folder / "ready", ends)
        (folder / "job.sql").write_text("\n;\n".join(statements(folder)))
        job = started(folder)
        try:
            peer.run(Flink(folder, ends, job), asked.ticks, asked.out)
        finally:
            end(job)


if __name__ == "__main__":
    main()
