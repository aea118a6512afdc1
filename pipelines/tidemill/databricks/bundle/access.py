"""Who may do what: folders that everybody may write to, and grants wider than a task needs.

workspace paths of each target ─► none below /Workspace/Shared
grants, permissions ────────────► no privilege that holds others, none for everybody
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from tidemill.config.yaml_values import Steps
from tidemill.databricks.bundle.document import Document
from tidemill.databricks.bundle.issue import Finding
from tidemill.databricks.bundle.project import Bundle, Resource, items, mapping
from tidemill.databricks.bundle.references import Target

PATHS = ("root_path", "file_path", "artifact_path", "resource_path", "state_path")
OWN = "/Workspace/Users/${workspace.current_user.userName}/.bundle/${bundle.name}/${bundle.target}"
SHARED = ("/workspace/shared", "/shared")
EVERYBODY = ("users", "account users")
# Privileges that hold others, or let who has them give them on.
WIDE = ("ALL_PRIVILEGES", "ALL PRIVILEGES", "MANAGE")
NAMES = ("group_name", "user_name", "service_principal_name")


def check(bundle: Bundle) -> Iterator[Finding]:
    """Yield shared folders, wide privileges, and what is given to everybody."""
    for name in bundle.targets:
        yield from _paths(Target(bundle, name))
        yield from _permissions(Target(bundle, name), ("targets", name))
    default = Target(bundle, bundle.default_target)
    yield from _permissions(default, ())
    for resource in bundle.resources:
        if isinstance(resource.value, Mapping):
            yield from _grants(bundle, resource)
            yield from _given(default, resource.document, resource.value, resource.steps)


def _paths(target: Target) -> Iterator[Finding]:
    """A file in a shared folder is code that anybody may change and the jobs then run."""
    for before in ((), ("targets", target.name)):
        workspace = mapping(target.bundle.main.value, *before, "workspace")
        for field in PATHS:
            path = str(target.resolved(workspace.get(field, "")))
            if _is_shared(path):
                steps = (*before, "workspace", field)
                message = f"every workspace user may write to {path}"
                yield target.bundle.main.finding(steps, message, OWN)


def _is_shared(path: str) -> bool:
    plain = posixpath.normpath(path).lower()
    return plain.startswith(tuple(f"{folder}/" for folder in SHARED)) or plain in SHARED


def _permissions(target: Target, steps: Steps) -> Iterator[Finding]:
    declared = mapping(target.bundle.main.value, *map(str, steps))
    yield from _given(target, target.bundle.main, declared, steps)


def _given(
    target: Target, document: Document, declared: Mapping[str, Any], steps: Steps
) -> Iterator[Finding]:
    """Yield permissions for everybody, and those of a group that lets it change what runs."""
    for number, each in items(target.resolved(dict(declared)), "permissions"):
        here = (*steps, "permissions", number)
        level, group = str(each.get("level")), each.get("group_name")
        if group is not None and str(group).lower() in EVERYBODY:
            message = f"{level} for everybody ({group})"
            yield document.finding((*here, "group_name"), message, "a group")
        elif group is not None and level in {"CAN_MANAGE", "IS_OWNER"}:
            message = f"{level} for {group}: its members may change what runs as another principal"
            yield document.finding((*here, "level"), message, "CAN_RUN or CAN_VIEW")


def _grants(bundle: Bundle, resource: Resource) -> Iterator[Finding]:
    for number, each in items(resource.value, "grants"):
        said = each.get("privileges")
        for place, privilege in enumerate(said if isinstance(said, list) else []):
            if str(privilege).upper() in WIDE:
                steps = ("grants", number, "privileges", place)
                message = f"{privilege} is more than a task or a reader needs"
                yield resource.finding(steps, message, "the privileges that are used, one by one")
        names = {n: Target(bundle, n).resolved(each.get("principal")) for n in bundle.targets}
        for name, principal in names.items():
            if str(principal).lower() in EVERYBODY:
                message = f"a grant to everybody ({principal}) in target {name}"
                yield resource.finding(("grants", number, "principal"), message, "a group")
                break
