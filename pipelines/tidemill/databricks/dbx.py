"""The bundle's jobs for dbx, the tool before bundles: `conf/deployment.yml`, `.dbx/project.json`.

Both are generated, so there is one place to change. dbx knows no variables, no serverless compute
and no user at hand: variables are resolved for each target, a serverless task runs on the writers'
cluster, and what only a bundle's deployment knows (who is told, who runs it) is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from tidemill.databricks.bundle.project import Bundle, Resource, mapping
from tidemill.databricks.bundle.references import Target
from tidemill.errors import DefinitionError

DEPLOYMENT, PROJECT = "conf/deployment.yml", ".dbx/project.json"
KNOWN = {"workspace.current_user.short_name": "dev"}
LEFT_OUT = ("environments", "permissions", "run_as")
HEAD = "# Generated from databricks.yml by `tidemill dbx export`; change that file instead.\n"


def exported(bundle: Bundle) -> dict[str, str]:
    """Return the text of each file, by its name."""
    environments = {
        name: {"workflows": [_workflow(bundle, name, job) for job in bundle.of("jobs")]}
        for name in bundle.targets
    }
    deployment = {"build": {"python": "pip"}, "environments": environments}
    text = yaml.dump(deployment, Dumper=_Dumper, sort_keys=False, width=100)
    return {DEPLOYMENT: HEAD + text, PROJECT: json.dumps(_project(bundle), indent=2) + "\n"}


def written(bundle: Bundle) -> list[str]:
    """Write the files; return the names of those that were not as they are now."""
    changed = stale(bundle)
    for name, text in exported(bundle).items():
        path = bundle.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return changed


def stale(bundle: Bundle) -> list[str]:
    """Return the names of the files that are missing or differ from what would be written."""
    return [
        name
        for name, text in exported(bundle).items()
        if not (bundle.folder / name).is_file()
        or (bundle.folder / name).read_text(encoding="utf-8") != text
    ]


class _Dumper(yaml.SafeDumper):
    """Writes a value that stands twice twice, as people do."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return that nothing is abbreviated."""
        return True


def _project(bundle: Bundle) -> dict[str, Any]:
    name = mapping(bundle.main.value, "bundle").get("name")
    return {
        "environments": {
            target: {
                "profile": "DEFAULT",
                "storage_type": "mlflow",
                "properties": {
                    "workspace_directory": f"/Shared/dbx/{name}/{target}",
                    "artifact_location": f"dbfs:/Shared/dbx/{name}/{target}",
                },
            }
            for target in bundle.targets
        },
        "inplace_jinja_support": False,
    }


def _workflow(bundle: Bundle, name: str, job: Resource) -> dict[str, Any]:
    target = Target(bundle, name, known=KNOWN)
    value = target.resolved(job.value)
    clusters = value.get("job_clusters") or [_cluster(bundle, target)]
    tasks = [_task(job, task, clusters[0]["job_cluster_key"]) for task in value.get("tasks", [])]
    kept = {key: part for key, part in value.items() if key not in (*LEFT_OUT, "tasks")}
    whole: dict[str, Any] = _without_holes({**kept, "job_clusters": clusters, "tasks": tasks})
    return whole


def _cluster(bundle: Bundle, target: Target) -> Any:
    """Return the first job cluster of the bundle, for a job that has none of its own."""
    for job in bundle.of("jobs"):
        for cluster in target.resolved(job.value).get("job_clusters") or []:
            return cluster
    raise DefinitionError(
        "no job has a job cluster", where="resources", expected="job_clusters: - job_cluster_key"
    )


def _task(job: Resource, task: Mapping[str, Any], cluster: str) -> dict[str, Any]:
    """Return a task as dbx has it: it brings the wheel by itself, and knows no environments."""
    words = mapping(task, "python_wheel_task").get("parameters") or []
    holes = [word for word in words if "${" in str(word)]
    if holes:
        raise DefinitionError(
            f"{holes[0]} stays open in a command line, and dbx has no variables",
            where=f"{job.key}.{task.get('task_key')}",
            expected="a variable with a default",
        )
    kept = {key: part for key, part in task.items() if key not in ("environment_key", "libraries")}
    others = [each for each in task.get("libraries") or [] if "whl" not in each]
    if "environment_key" in task:
        kept["job_cluster_key"] = cluster
        others = _pinned(job, str(task["environment_key"]))
    return {**kept, **({"libraries": others} if others else {})}


def _pinned(job: Resource, key: str) -> list[dict[str, Any]]:
    """Return the packages of a serverless environment as libraries."""
    specs = [
        mapping(each, "spec")
        for each in job.value.get("environments", [])
        if mapping(each).get("environment_key") == key
    ]
    packages = [p for spec in specs for p in spec.get("dependencies") or [] if ".whl" not in p]
    return [{"pypi": {"package": package}} for package in packages]


def _without_holes(value: Any) -> Any:
    """Return the value without the parts that hold an open reference, and without what they leave
    empty."""
    if isinstance(value, Mapping):
        parts = {key: _without_holes(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part not in (None, {}, [])}
    if isinstance(value, list):
        return [p for p in map(_without_holes, value) if p not in (None, {}, [])]
    return None if isinstance(value, str) and "${" in value else value
