"""What Delta's checksum file says of a table's version, in a folder: size, files, whose id, columns
and properties.

Delta (4.4) writes `<version>.crc` beside each of its commits; another writer may not, and after a
commit of `deltalake` it is written here. A query for the same has to put the whole table together
from its log, which takes seconds in a new session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidemill.lake.commits.metadata import Detail, Metadata

# What of a checksum a MERGE's own actions tell of; Delta adds the rest again when it can.
_FOLLOWED = (
    "tableSizeBytes",
    "numFiles",
    "numMetadata",
    "numProtocol",
    "setTransactions",
    "domainMetadata",
    "metadata",
    "protocol",
)
_LEFT_TO_DELTA = {"metaData", "protocol", "domainMetadata"}


def detail(log: Path, version: int) -> Detail | None:
    """Return what a version's checksum says; None without one."""
    said = _read(log, version)
    try:
        return Detail(
            str(said["metadata"]["id"]), int(said["numFiles"]), int(said["tableSizeBytes"])
        )
    except (KeyError, TypeError, ValueError):
        return None


def metadata(log: Path, version: int) -> Metadata | None:
    """Return the columns and properties that a version's checksum tells; None without one."""
    said = _read(log, version).get("metadata", {})
    try:
        return Metadata.of(str(said["schemaString"]), said.get("configuration") or {})
    except (KeyError, TypeError, ValueError):
        return None


def size(log: Path, version: int) -> int | None:
    """Return the bytes of a version's files, by its checksum; None without one."""
    said = detail(log, version)
    return said.bytes if said else None


def follow(log: Path, version: int) -> None:
    """Write a version's checksum from the one before it and the version's own actions, as Delta
    does after a commit of its own; none where the one before is missing, or more changed than files
    and numbers of transactions."""
    before, commit = _read(log, version - 1), log / f"{version:020}.json"
    actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
    if not before or any(_LEFT_TO_DELTA & {*action} for action in actions):
        return
    said = {name: before[name] for name in _FOLLOWED if name in before}
    seen = {each["appId"]: each for each in said.get("setTransactions") or []}
    try:
        for action in actions:
            for kind, sign in (("add", 1), ("remove", -1)):
                if kind in action:
                    said["numFiles"] += sign
                    said["tableSizeBytes"] += sign * int(action[kind]["size"])
            if "txn" in action:
                seen[action["txn"]["appId"]] = action["txn"]
    except (KeyError, TypeError):
        return
    said["setTransactions"] = [*seen.values()]
    written = log / f".{version:020}.crc.new"
    written.write_text(json.dumps(said), encoding="utf-8")
    written.replace(log / f"{version:020}.crc")


def _read(log: Path, version: int) -> Mapping[str, Any]:
    try:
        said = json.loads((log / f"{version:020}.crc").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
