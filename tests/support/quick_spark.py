"""Spark set for small data and a short life: in this run's session, and in those of children."""

from __future__ import annotations

import shlex
from pathlib import Path

from tidemill.lake.session.session import SMALL_DATA

# Java's first compiler alone: what the second one makes comes late in a short life, and until then
# costs a core. Alone, the first one has 48 MB for what it makes, and Spark fills them.
FIRST_COMPILER = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
}
LONG_RUN = 2000  # tests, after which the second compiler has paid
SETTINGS = {
    **FIRST_COMPILER,
    **SMALL_DATA,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}


def environment(folder: Path) -> dict[str, str]:
    """The variables that have a process's Spark begin with SETTINGS, by a file in a folder.

    A folder of settings (SPARK_CONF_DIR) would stand on the class path before Spark's jars, and
    Java takes an archive of classes only where the class path begins as the archive's does.
    """
    file = folder / "quick-spark.conf"
    file.write_text("".join(f"{name} {value}\n" for name, value in SETTINGS.items()))
    return {"PYSPARK_SUBMIT_ARGS": f"--properties-file {shlex.quote(str(file))} pyspark-shell"}
