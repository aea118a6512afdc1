"""How much a Spark session has done: jobs, tasks, bytes read from files, Delta commits.

By the session's own status store, which is there without the web page and counts the jobs of
streaming queries too; commits by the files of the Delta logs.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

Work = dict[str, int]


def so_far(spark: SparkSession, tables: Path) -> Work:
    store = spark.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    numbers = (jobs.apply(place).jobId() for place in range(jobs.size()))
    driver = store.executorSummary("driver")
    return {
        "jobs": max(numbers, default=-1) + 1,
        "tasks": driver.totalTasks(),
        "read": driver.totalInputBytes(),
        "commits": len(list(tables.glob("*/_delta_log/*.json"))),
    }


def since(spark: SparkSession, tables: Path, before: Work) -> Work:
    return {name: number - before[name] for name, number in so_far(spark, tables).items()}
