"""A session of its own in the same Spark, for work in another thread.

Session settings carry ledgers and transactions of the next commit, so two threads may not share
one.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from tidemill.lake.session import launch, required_settings


def separate_session(spark: SparkSession) -> SparkSession:
    """Return another session of the same Spark, set to UTC and ANSI, with the catalog's tables and
    without temporary views. On Spark Connect it is a clone, which has them too."""
    clone = getattr(spark, "cloneSession", None) if launch.is_remote(spark) else None
    return required_settings.apply(clone() if clone else spark.newSession())
