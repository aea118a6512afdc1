"""Spark set for small data, in this process's session and in those of children.

Java's first compiler alone starts a lake in two thirds of the time, while two processes share two
cores. Java then sets 48 MB aside for compiled code, which Spark fills: it would compile the same
methods again and again.
"""

from __future__ import annotations

from pathlib import Path

JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
JAVA_OPTIONS = "spark.driver.extraJavaOptions"
SETTINGS = {
    JAVA_OPTIONS: JVM,
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}


def environment(folder: Path) -> dict[str, str]:
    """The variables that have a process's Spark begin with SETTINGS, by a file in a folder.

    A folder of settings (SPARK_CONF_DIR) would stand on the class path before Spark's jars, and
    Java takes an archive of classes only where the class path begins as the archive's does.
    """
    file = folder / "quick-spark.conf"
    file.write_text("".join(f"{name} {value}\n" for name, value in SETTINGS.items()))
    return {"PYSPARK_SUBMIT_ARGS": f"--properties-file '{file}' pyspark-shell"}
