"""The Spark session: the platform's when there is one, otherwise a local one built here.

Nothing else in the package builds a session; the functions get theirs as an argument.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tidemill.errors import SetupError, TidemillError
from tidemill.lake.session import launch, local_machine, sizing
from tidemill.lake.session.temporary_conf import temporary_conf
from tidemill.lake.visible_text import visible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# PySpark prints every analysis error with its Java stack before it raises it.
_PRINT_STACKS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    # Delta's parser drops parameter markers unless Spark substitutes them itself (delta 7640).
    "spark.sql.legacy.parameterSubstitution.constantsOnly": "true",
    # pandas writes timestamps in nanoseconds, which Spark otherwise refuses to read.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # Times with statistics in the files, by which a reader skips; Spark's own default has none.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # A Delta snapshot is a 50-task stage by default.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",  # VACUUM: 10,000 tasks else
    # A batch has more pieces of code than Spark keeps by default (100): each was compiled anew.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # The JVM does not compile a method beyond 8,000 bytes; Spark then splits the stage instead.
    "spark.sql.codegen.hugeMethodLimit": "8000",
    # What joins or adds up takes memory by the page, 64 MB of it by default, for ten rows too.
    "spark.buffer.pageSize": "2m",
    # With few shuffle partitions there is nothing to adapt; each stage would be planned again.
    "spark.sql.adaptive.enabled": "false",
    # Rows are kept in a copy of the session where one of these is on, one copy each time.
    "spark.sql.adaptive.applyFinalStageShuffleOptimizations": "false",
    "spark.sql.sources.bucketing.autoBucketedScan.enabled": "false",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
    # Killed in the write of its first offset, a query leaves a part of it: Spark 4.1 and later
    # refuse such a checkpoint for good. Whose a checkpoint is says its identity (`checkpoints`).
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
    # A stream that cannot be stopped is an error, not a process that never ends.
    "spark.sql.streaming.stopTimeout": "180s",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Each statement's plan is written out for the browser's page of it; `formatted` walks it twice.
    "spark.sql.ui.explainMode": "simple",
}
# A small machine spends more on compiling Java than on running it: compile what is hot for long.
# Classes take 200 MB before the first batch ends; from 21 MB on Java would collect all for them.
JVM = (
    "-XX:+UseSerialGC -XX:MetaspaceSize=256m -XX:Tier4InvocationThreshold=30000 "
    "-XX:Tier4MinInvocationThreshold=6000 -XX:Tier4CompileThreshold=75000 "
    "-XX:Tier4BackEdgeThreshold=400000"
)
SMALL_MACHINE = 4  # cores
# By which Delta and streams commit; `launch.write_plain_files` is the rest of it.
PLAIN_FILES = {
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs"
}
# Of data that is small each statement costs more to compile than to interpret.
INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# And where a whole lake is small each task costs more than what it reads.
SMALL_DATA = {
    **INTERPRETED,
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.shuffle.partitions": "1",
}
# Of data that is small a broadcast, which is a job of its own, costs more than a shuffle.
WITHOUT_BROADCASTS = {"spark.sql.autoBroadcastJoinThreshold": "-1"}


def session(
    *,
    driver_memory: str | None = None,
    verbose: bool = False,
    shuffle_partitions: int | None = None,
    extra: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the active session untouched (a platform's, a notebook's), else a local one.

    One of Databricks or Connect that is made here is set to UTC and ANSI (`session_settings`). The
    arguments are those of `local_session` and mean nothing to a session that exists.
    """
    require_spark()
    from pyspark.sql import SparkSession

    if active := SparkSession.getActiveSession():
        return active
    if not makes_local():
        from tidemill.lake.session.required_settings import apply

        return apply(SparkSession.builder.getOrCreate())
    return local_session(
        driver_memory=driver_memory,
        verbose=verbose,
        shuffle_partitions=shuffle_partitions,
        extra=extra,
    )


def makes_local() -> bool:
    """Return whether `session` would make a local one: none is there, and no platform's."""
    require_spark()
    from pyspark.sql import SparkSession

    if SparkSession.getActiveSession() is not None:
        return False
    return not (on_databricks() or _remote().startswith("sc://"))


def on_databricks() -> bool:
    """Return whether this process runs on a Databricks cluster."""
    return "DATABRICKS_RUNTIME_VERSION" in os.environ


def _remote() -> str:
    """Return where Spark Connect is: `sc://host`, `local[2]` for a server in here, else nothing."""
    return os.environ.get("SPARK_REMOTE", "")


def local_session(
    *,
    driver_memory: str | None = None,
    verbose: bool = False,
    shuffle_partitions: int | None = None,
    extra: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return a session in this process's own JVM, with Delta, in UTC, with its logs put away.

    What is None follows the machine (`sizing`). `extra` overrides any setting; packages in its
    `spark.jars.packages` join Delta's. A JVM that is already running is used again, with the memory
    and jars it was started with. Where SPARK_REMOTE is `local[n]` the session is of Spark Connect,
    its server in this JVM. A missing Java, package or jar raises SetupError before or instead of
    Spark's own error.
    """
    for check in (local_machine.java(), local_machine.spark(), local_machine.delta()):
        _require(check)
    from pyspark.logger import PySparkLogger

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    folder, size = _session_folder(), sizing.here()
    conf = {
        **CONF,
        **_of_this_machine(),
        "spark.app.name": "tidemill",
        "spark.driver.memory": driver_memory or size.driver_memory,
        "spark.sql.shuffle.partitions": str(shuffle_partitions or size.shuffle_partitions),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **(extra or {}),
    }
    spark = launch.start(conf, None if verbose else folder / "spark.log")
    if not _remote():
        spark.sparkContext.setLogLevel("WARN" if verbose else "ERROR")
        launch.write_plain_files(spark)
    for name in _PRINT_STACKS:
        PySparkLogger.getLogger(name).disabled = not verbose
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return spark


def class_archive() -> Path | None:
    """Return where the class archive of local sessions is, or would be, on this machine; None
    without Java, packages or jars."""
    checks = (local_machine.java(), local_machine.spark(), local_machine.delta())
    if not all(check.ok for check in checks):
        return None
    return launch.class_archive_of({**CONF, **_of_this_machine()})


def _of_this_machine() -> dict[str, str]:
    """Return the settings that follow from this machine."""
    return {
        **({} if _remote() else {"spark.master": f"local[{sizing.here().tasks}]", **PLAIN_FILES}),
        "spark.jars.ivy": str(local_machine.ivy_folder()),
        **({"spark.driver.defaultJavaOptions": JVM} if sizing.cores() <= SMALL_MACHINE else {}),
    }


def interpreted(spark: SparkSession) -> contextlib.AbstractContextManager[None]:
    """Have the session's statements interpreted while the block runs: quicker where they read
    little, slower where they read much."""
    return temporary_conf(spark, INTERPRETED)


def require_spark() -> None:
    """Raise SetupError when pyspark or delta cannot be imported; a bare wheel brings neither."""
    _require(local_machine.importable())


def _require(check: local_machine.Check) -> None:
    if not check.ok:
        raise SetupError(check.sentence, where=check.name, expected=check.expected)


def _session_folder() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="tidemill-"))
    except OSError as error:
        message = f"no temporary folder can be written ({error}); free space or set TMPDIR"
        raise SetupError(message, where="session") from error


def main() -> int:
    """Start one session and stop it, which fetches the jars the first time; return an exit code."""
    try:
        local_session(driver_memory="512m").stop()
    except TidemillError as error:
        print(f"error: {visible(error)}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
