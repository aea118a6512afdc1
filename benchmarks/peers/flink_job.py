"""Runs in Flink's own environment: submit the SQL of a folder, and stay.

    flink_job.py <folder with job.sql, its statements divided by lines of `;`>

Checkpoints are kept in the folder too. The last statement is the streaming INSERT; the process ends
when its job does, or is ended.
"""

from __future__ import annotations

import sys
from pathlib import Path

from pyflink.common import Configuration  # type: ignore[import-not-found]
from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

CONF = {
    "parallelism.default": "1",
    "execution.checkpointing.interval": "200 ms",
    "execution.checkpointing.storage": "filesystem",
    "pipeline.auto-watermark-interval": "50 ms",
    "table.local-time-zone": "UTC",
    "taskmanager.memory.network.min": "64mb",
    "taskmanager.memory.network.max": "64mb",
}


def main() -> None:
    conf = Configuration()
    folder = Path(sys.argv[1])
    checkpoints = {"execution.checkpointing.dir": f"file://{folder}/checkpoints"}
    for name, value in {**CONF, **checkpoints}.items():
        conf.set_string(name, value)
    settings = EnvironmentSettings.new_instance().in_streaming_mode().with_configuration(conf)
    tables = TableEnvironment.create(settings.build())
    *before, insert = (folder / "job.sql").read_text().split("\n;\n")
    for statement in before:
        tables.execute_sql(statement)
    job = tables.execute_sql(insert)
    print("started", flush=True)
    job.wait()


if __name__ == "__main__":
    main()
