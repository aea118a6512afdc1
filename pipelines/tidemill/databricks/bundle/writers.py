"""One writer: of the jobs that write, exactly one runs by itself in each target.

Two would stream from one checkpoint. A catalog lake takes no lock, so nothing else would stop them.
Bundles have no conditions: each target says `mode`, and a pause status for each job that writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from tidemill.databricks.bundle import tasks
from tidemill.databricks.bundle.issue import Finding
from tidemill.databricks.bundle.project import Bundle, Resource, items, mapping
from tidemill.databricks.bundle.references import REFERENCE, Target
from tidemill.databricks.bundle.tasks import Task

ONE_USER = ("SINGLE_USER", "DATA_SECURITY_MODE_DEDICATED")
WRITING = ("demo", "run", "refresh", "rebuild", "maintain")
REPAIRING = ("reconcile", "recompute")
MODES = ("stream", "scheduled")
STARTS = ("continuous", "schedule", "trigger")
RUNTIME = 19  # the first Databricks Runtime with Spark 4.2


def check(bundle: Bundle) -> Iterator[Finding]:
    """Yield targets with no writer or two, and writers that could meet themselves."""
    writers = [job for job in bundle.of("jobs") if any(map(writes, tasks.of(job)))]
    for job in writers:
        yield from _alone(job)
        for task in filter(writes, tasks.of(job)):
            yield from _classic(bundle, job, task)
    for name in bundle.targets if writers else ():
        yield from _one(Target(bundle, name), writers)


def writes(task: Task) -> bool:
    """Return whether the task's command writes to the lake."""
    return task.words[:1] != [] and (
        task.words[0] in WRITING or (task.words[0] in REPAIRING and "--repair" in task.words)
    )


def _one(target: Target, writers: list[Resource]) -> Iterator[Finding]:
    started = [job for job in writers if _runs(target, job)]
    keys = " and ".join(job.key for job in started) or "no job"
    if len(started) != 1:
        known = " or ".join(job.key for job in writers)
        message = f"{keys} would write in target {target.name}"
        yield _where(target, started or writers, message, f"one of {known}")
    mode = target.resolved("${var.mode}")
    if mode not in MODES:
        steps = target.declares("mode")
        message = f"mode is {mode!r} in target {target.name}"
        yield target.bundle.main.finding(steps, message, " or ".join(MODES))
    elif len(started) == 1 and not started[0].key.endswith(f"_{mode}"):
        message = f"mode is {mode!r} in target {target.name}, but {keys} runs"
        yield target.bundle.main.finding(target.declares("mode"), message)


def _runs(target: Target, job: Resource) -> bool:
    """Return whether the job starts by itself; what is not said runs, as in production."""
    said = [mapping(job.value, name) for name in STARTS if name in job.value]
    return any(target.resolved(each.get("pause_status", "UNPAUSED")) != "PAUSED" for each in said)


def _where(target: Target, jobs: list[Resource], message: str, expected: str) -> Finding:
    """Return the finding at the status that the target says last, or in the job where none does."""
    for job in reversed(jobs):
        for start in STARTS:
            status = mapping(job.value, start).get("pause_status")
            named = REFERENCE.fullmatch(str(status))
            if named and named[1].startswith("var."):
                steps = target.declares(named[1].removeprefix("var."))
                return target.bundle.main.finding(steps, message, expected)
            if status:
                return job.finding((start, "pause_status"), message, expected)
    return jobs[-1].finding((), message, expected)


def _alone(job: Resource) -> Iterator[Finding]:
    """A run may not meet the next one, nor a task that writes another beside it."""
    if job.value.get("max_concurrent_runs") != 1:
        yield job.finding(("max_concurrent_runs",), "a job that writes runs once at a time", "1")
    job_tasks = tasks.of(job)
    before = {task.key: _before(task.key, job_tasks) for task in job_tasks}
    for one, other in combinations(filter(writes, job_tasks), 2):
        if one.key not in before[other.key] and other.key not in before[one.key]:
            message = f"{one.key!r} and {other.key!r} may write at the same time"
            yield other.finding(("task_key",), message, f"depends_on: {one.key}")


def _before(key: str, job_tasks: list[Task]) -> set[str]:
    """Return every task that is done before the one called `key` starts."""
    after = {task.key: task.after for task in job_tasks}
    seen: set[str] = set()
    waiting = list(after.get(key, []))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += after.get(name, [])
    return seen


def _classic(bundle: Bundle, job: Resource, task: Task) -> Iterator[Finding]:
    """A MERGE carries its ledger in session settings, which serverless compute refuses."""
    if "environment_key" in task.value:
        message = f"task {task.key!r} writes on serverless compute"
        yield task.finding(("environment_key",), message, "a classic job cluster")
    target = Target(bundle, bundle.default_target)
    for number, each in items(target.resolved(job.value), "job_clusters"):
        if each.get("job_cluster_key") != task.value.get("job_cluster_key"):
            continue
        cluster = mapping(each, "new_cluster")
        mode, version = cluster.get("data_security_mode"), str(cluster.get("spark_version"))
        for field, wrong, expected in (
            ("data_security_mode", mode not in ONE_USER, ONE_USER[0]),
            ("spark_version", _older(version), f"{RUNTIME}.x-scala2.13 or newer"),
        ):
            if wrong:
                document, steps = target.place(job, ("job_clusters", number, "new_cluster", field))
                message = f"task {task.key!r} writes on a cluster with {field} {cluster.get(field)}"
                yield document.finding(steps, message, expected)


def _older(spark_version: str) -> bool:
    """Return whether a Databricks Runtime is older than we need."""
    number = re.match(r"(\d+)\.", spark_version)
    return number is not None and int(number[1]) < RUNTIME


def pipelines(bundle: Bundle) -> list[str]:
    """Return the pipelines that the bundle's tasks write, by name or file."""
    names = [
        str(task.words[1])
        for job in bundle.of("jobs")
        for task in filter(writes, tasks.of(job))
        if len(task.words) > 1
    ]
    return list(dict.fromkeys(names))
