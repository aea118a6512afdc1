"""Tasks: where they run, what they wait for, and the command line that each is."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePosixPath
from typing import Any

from tidemill.config.yaml_values import Steps
from tidemill.databricks.bundle.issue import Finding
from tidemill.databricks.bundle.named_files import libraries, wheel_findings
from tidemill.databricks.bundle.project import Bundle, Resource, items, mapping
from tidemill.databricks.bundle.references import Target
from tidemill.features.suggestions import did_you_mean

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

COMPUTE = ("job_cluster_key", "environment_key", "new_cluster", "existing_cluster_id")
Refused = Callable[[Sequence[str]], str | None]


@dataclass(frozen=True)
class Task:
    """A task of a job, and where it stands."""

    job: Resource
    number: int
    value: Mapping[str, Any]

    @property
    def key(self) -> str:
        """Its name in the job."""
        return str(self.value.get("task_key", ""))

    @property
    def after(self) -> list[str]:
        """The names of the tasks that it waits for."""
        return [str(each.get("task_key")) for _, each in items(self.value, "depends_on")]

    @property
    def words(self) -> list[Any]:
        """Its command line as it is written, `tidemill` left out."""
        parameters = mapping(self.value, "python_wheel_task").get("parameters")
        return parameters if isinstance(parameters, list) else []

    def finding(self, steps: Steps, message: str, expected: str | None = None) -> Finding:
        """Return what is wrong with a part of it."""
        return self.job.finding(("tasks", self.number, *steps), message, expected)


def of(job: Resource) -> list[Task]:
    """Return the job's tasks."""
    return [Task(job, number, value) for number, value in items(job.value, "tasks")]


def check(bundle: Bundle, refused: Refused) -> Iterator[Finding]:
    """Yield tasks without compute, that wait for nothing that is, or that are no command of ours;
    `refused` tells why the command line refuses words, None when it does not."""
    project = _project(bundle)
    yield from project.findings
    for job in bundle.of("jobs"):
        tasks = of(job)
        if not tasks:
            yield job.finding((), f"job {job.key!r} has no task")
        yield from _order(tasks)
        for task in tasks:
            yield from _compute(job, task)
            yield from _wheels(bundle, job, task)
            yield from _entry_point(task, project)
            yield from _command_line(bundle, task, refused)
        yield from _continuous(job, tasks)
        for number, each in items(job.value, "environments"):
            wheels = mapping(each, "spec").get("dependencies") or []
            for place, wheel in enumerate(wheels if isinstance(wheels, list) else []):
                steps = ("environments", number, "spec", "dependencies", place)
                yield from wheel_findings(bundle, job, steps, wheel)


def _order(tasks: list[Task]) -> Iterator[Finding]:
    keys = [task.key for task in tasks]
    for task in tasks:
        if keys.index(task.key) != [t.number for t in tasks].index(task.number):
            yield task.finding(("task_key",), f"two tasks are called {task.key!r}")
        for number, each in items(task.value, "depends_on"):
            wanted = str(each.get("task_key"))
            if wanted not in keys:
                message = f"no task is called {wanted!r}{did_you_mean(wanted, keys)}"
                yield task.finding(("depends_on", number, "task_key"), message)
    try:
        TopologicalSorter({task.key: task.after for task in tasks}).prepare()
    except CycleError as error:
        circle = [str(key) for key in error.args[1]]
        first = next(task for task in tasks if task.key in circle)
        steps = ("depends_on", next(n for n, key in enumerate(first.after) if key in circle))
        yield first.finding(steps, f"tasks wait for each other: {' → '.join(circle)}")


def _compute(job: Resource, task: Task) -> Iterator[Finding]:
    said = [name for name in COMPUTE if name in task.value]
    if len(said) != 1:
        kinds = " and ".join(said) or "nothing"
        yield task.finding((), f"task {task.key!r} runs on {kinds}", f"one of {', '.join(COMPUTE)}")
    for field, listed in (("job_cluster_key", "job_clusters"), ("environment_key", "environments")):
        known = [str(each.get(field)) for _, each in items(job.value, listed)]
        wanted = task.value.get(field)
        if wanted is not None and str(wanted) not in known:
            message = f"{listed} has no {wanted!r}{did_you_mean(str(wanted), known)}"
            yield task.finding((field,), message)


def _wheels(bundle: Bundle, job: Resource, task: Task) -> Iterator[Finding]:
    for number, wheel in libraries(task.value):
        steps = ("tasks", task.number, "libraries", number, "whl")
        yield from wheel_findings(bundle, job, steps, wheel)
    if "python_wheel_task" in task.value and "environment_key" not in task.value:
        if not any(libraries(task.value)):
            yield task.finding((), f"task {task.key!r} brings no wheel", "libraries: - whl: ...")


@dataclass(frozen=True)
class _Project:
    """What the artifact's pyproject.toml declares: name, entry points; or why it cannot be read."""

    name: str = ""
    scripts: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()


def _project(bundle: Bundle) -> _Project:
    for artifact in mapping(bundle.main.value, "artifacts").values():
        file = PurePosixPath(str(mapping(artifact).get("path", "."))) / "pyproject.toml"
        if (bundle.folder / file).is_file():
            try:
                declared = tomllib.loads((bundle.folder / file).read_text(encoding="utf-8"))
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                line = re.search(r"at line (\d+)", str(error))  # no field before Python 3.14
                message = f"is no TOML: {error}"
                return _Project(
                    findings=(Finding(str(file), int(line[1]) if line else 1, message),)
                )
            project = mapping(declared, "project")
            return _Project(str(project.get("name", "")), tuple(mapping(project, "scripts")))
    return _Project()


def _entry_point(task: Task, project: _Project) -> Iterator[Finding]:
    wheel = mapping(task.value, "python_wheel_task")
    if "python_wheel_task" not in task.value:
        yield task.finding((), f"task {task.key!r} is no python_wheel_task")
        return
    if project.findings:
        return
    name, entry = wheel.get("package_name"), wheel.get("entry_point")
    if name != project.name:
        steps = ("python_wheel_task", "package_name")
        yield task.finding(steps, f"the wheel is not called {name!r}", project.name)
    if entry not in project.scripts:
        hint = did_you_mean(str(entry), project.scripts)
        message = f"the wheel has no entry point {entry!r}{hint}"
        yield task.finding(("python_wheel_task", "entry_point"), message)


def _command_line(bundle: Bundle, task: Task, refused: Refused) -> Iterator[Finding]:
    said = Target(bundle, bundle.default_target).resolved(task.words)
    if not said:
        return
    why = refused([str(word) for word in said])
    if why is None:
        return
    steps: Steps = ("python_wheel_task", "parameters")
    blamed = [n for n, word in enumerate(said) if re.search(rf"(?<![\w-]){re.escape(word)}\b", why)]
    yield task.finding((*steps, *blamed[:1]), f"the command line refuses it: {why}")


def _continuous(job: Resource, tasks: list[Task]) -> Iterator[Finding]:
    """A continuous job is restarted as a whole: Databricks takes no retries of its tasks."""
    if "continuous" not in job.value:
        return
    for other in ("schedule", "trigger"):
        if other in job.value:
            yield job.finding((other,), f"a continuous job has no {other}")
    for task in tasks:
        for field in ("max_retries", "depends_on"):
            if field in task.value:
                yield task.finding((field,), f"a task of a continuous job takes no {field}")
