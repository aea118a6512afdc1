"""What Delta's checksum file says of a table's version, in a folder: size, files, whose id, columns
and properties.

Delta (4.4) writes `<version>.crc` beside each of its commits; another writer may not. A query for
the same has to put the whole table together from its log, which takes seconds in a new session.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tidemill.lake.commits.metadata import Detail, Metadata


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


def _read(log: Path, version: int) -> Mapping[str, Any]:
    try:
        said = json.loads((log / f"{version:020}.crc").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}
