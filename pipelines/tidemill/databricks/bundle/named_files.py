"""Files that the bundle names, schedules that it tells, and words that belong in no file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tidemill.databricks.bundle import cron
from tidemill.databricks.bundle.issue import Finding
from tidemill.databricks.bundle.project import Bundle, Resource, items, mapping
from tidemill.databricks.bundle.references import Target

GENERATED = ("conf/deployment.yml", ".dbx/project.json")
SECRETS = {
    "a Databricks token": re.compile(r"\bdapi[0-9a-f]{32}\b|\bdose[0-9a-f]{32}\b"),
    "an AWS access key": re.compile(r"\b(AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"),
    "a token": re.compile(
        r"\b(gh[pousr]_\w{36}|xox[abprs]-[\w-]{10,}|eyJ[\w-]{10,}\.[\w-]{10,}\.)"
    ),
    "a password": re.compile(
        r"""(?i)["']?\w*(password|passwd|secret|token|api_?key|access_?key|client_secret)["']?"""
        r"""\s*[:=]\s*["']?(?!\$\{|\{\{|["'\s])[^\s"'#]{6,}"""
    ),
    "a connection string with a password": re.compile(r"\w+://[^/\s:@$]+:[^@\s$]+@"),
}


def check(bundle: Bundle) -> Iterator[Finding]:
    """Yield missing files, schedules that are none, and secrets."""
    yield from _includes(bundle)
    yield from _artifacts(bundle)
    for kind in ("dashboards", "alerts"):
        for resource in bundle.of(kind):
            yield from _named_file(bundle, resource)
    yield from _schedules(bundle)
    for file in _all_files(bundle):
        yield from _secrets(bundle.folder, file)


def _includes(bundle: Bundle) -> Iterator[Finding]:
    patterns = mapping({"": bundle.main.value}, "").get("include")
    for number, pattern in enumerate(patterns if isinstance(patterns, list) else []):
        if not any(bundle.folder.glob(str(pattern))):
            yield bundle.main.finding(("include", number), f"no file matches {pattern!r}")


def _artifacts(bundle: Bundle) -> Iterator[Finding]:
    for name, artifact in mapping(bundle.main.value, "artifacts").items():
        path = str(mapping(artifact).get("path", "."))
        if not (bundle.folder / path / "pyproject.toml").is_file():
            yield bundle.main.finding(
                ("artifacts", name, "path"), f"there is no pyproject.toml in {path!r}"
            )


def _named_file(bundle: Bundle, resource: Resource) -> Iterator[Finding]:
    named = resource.value.get("file_path")
    if isinstance(named, str) and not (bundle.folder / resource.path(named)).is_file():
        yield resource.finding(("file_path",), f"there is no file {resource.path(named)}")
    if resource.kind == "dashboards" and not named:
        yield resource.finding((), f"dashboard {resource.key!r} has no file_path")


def _schedules(bundle: Bundle) -> Iterator[Finding]:
    fields = {"jobs": "quartz_cron_expression", "alerts": "quartz_cron_schedule"}
    for kind, field in fields.items():
        for resource in bundle.of(kind):
            schedule = mapping(resource.value, "schedule")
            for name in bundle.targets if field in schedule else ():
                said = Target(bundle, name).resolved(schedule[field])
                if wrong := cron.wrong(str(said)):
                    message = f"{said!r} is no Quartz expression in target {name}: it {wrong}"
                    yield resource.finding(("schedule", field), message, "0 0/15 * * * ?")
                    break


def dashboards(bundle: Bundle) -> Iterator[tuple[Resource, str]]:
    """Yield the dashboards whose file is there, with the file."""
    for resource in bundle.of("dashboards"):
        file = resource.path(str(resource.value.get("file_path")))
        if (bundle.folder / file).is_file():
            yield resource, file


def _all_files(bundle: Bundle) -> list[str]:
    named = [document.file for document in bundle.documents]
    named += [file for _, file in dashboards(bundle)]
    return [*named, *(file for file in GENERATED if (bundle.folder / file).is_file())]


def _secrets(folder: Path, file: str) -> Iterator[Finding]:
    text = (folder / file).read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        for what, pattern in SECRETS.items():
            if pattern.search(line):
                expected = "a secret scope, {{secrets/scope/key}}, or a variable"
                yield Finding(file, number, f"looks like {what}", expected)
                break


def wheels(bundle: Bundle) -> list[Path]:
    """Return the folders in which builds leave their wheels."""
    return [
        (bundle.folder / str(mapping(artifact).get("path", ".")) / "dist").resolve()
        for artifact in mapping(bundle.main.value, "artifacts").values()
    ]


def wheel_findings(
    bundle: Bundle, resource: Resource, steps: tuple[str | int, ...], wheel: Any
) -> Iterator[Finding]:
    """Yield what is wrong with a wheel's path: no build leaves one there."""
    if not str(wheel).endswith(".whl"):
        return
    if (bundle.folder / resource.path(str(wheel))).parent.resolve() not in wheels(bundle):
        yield resource.finding(steps, f"no artifact is built as {wheel!r}", "../dist/*.whl")


def libraries(task: Mapping[str, Any]) -> Iterator[tuple[int, Any]]:
    """Yield the wheels among a task's libraries, each with its number."""
    for number, library in items(task, "libraries"):
        if "whl" in library:
            yield number, library["whl"]
