"""Which refused records were sent through again, repaired: `<pipeline>_replays`.

A repaired record is a record of its own in bronze, called `replay:<record_id>`; the one it repairs
stays there too. Judged again (by a rebuild, with rules that have changed since) the original might
pass beside its repaired copy and count twice. So clean sets aside what this table names: it is
refused again, for the reason `replayed` where nothing else is wrong with it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from tidemill.lake.catalog import Lake

PREFIX = "replay:"
REASON = "replayed"


def set_aside(judged: DataFrame, lake: Lake) -> DataFrame:
    """Return judged records, those refused that a repaired one stands for. Of what was ever sent
    again only the days of these records are read."""
    name = lake.tables.replays.name
    if not lake.has(name):
        return judged
    days = [row["ingest_date"] for row in judged.select("ingest_date").distinct().collect()]
    of_days = lake.spark.table(name).where(F.col("ingest_date").isin(days))
    sent = of_days.select("record_id", F.lit(True).alias("__sent"))
    passed = (F.size("reasons") == 0) & F.col("__sent")
    reasons = F.when(passed, F.array(F.lit(REASON))).otherwise(F.col("reasons"))
    joined = judged.join(sent, "record_id", "left").withColumn("reasons", reasons)
    return joined.select(*judged.columns)


def landed(lake: Lake) -> DataFrame:
    """Return `record_id` of the refused records whose repaired ones are in bronze."""
    sent = lake.spark.table(lake.tables.replays.name)
    days = [row["ingest_date"] for row in sent.select("ingest_date").distinct().collect()]
    bronze = lake.spark.table(lake.tables.bronze.name)
    rows = bronze.where(F.col("ingest_date").isin(days)).select(F.col("record_id").alias("there"))
    return sent.join(rows, F.col("replay_id") == F.col("there"), "left_semi").select("record_id")
