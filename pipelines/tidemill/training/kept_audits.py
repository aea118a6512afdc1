"""Audits that were done of a lake in a folder: a JSON line each, for the report.

Rates alone are kept: examples hold keys and values, which may be about persons.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tidemill.config.settings import iso
from tidemill.lake.catalog import Lake

NAME = "_tidemill_audits.jsonl"
_KEPT = ("view", "gold_version", "as_of", "keys", "compared", "different", "sources", "skipped")


def keep(lake: Lake, facts: Mapping[str, Any], at: datetime) -> None:
    """Append what an audit found; of a lake in a catalog nothing is kept."""
    root = lake.place.folder
    if root is None:
        return
    line = {"at": iso(at), **{name: facts[name] for name in _KEPT}}
    with (root / NAME).open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line) + "\n")


def newest(lake: Lake, views: Sequence[str]) -> list[dict[str, Any]]:
    """Return the newest audit of each view, in their order; views that never had one are left
    out."""
    root = lake.place.folder
    if root is None or not (root / NAME).is_file():
        return []
    found: dict[str, dict[str, Any]] = {}
    for text in (root / NAME).read_text(encoding="utf-8").splitlines():
        try:
            line = json.loads(text)
            found[line["view"]] = line
        except (ValueError, KeyError, TypeError):
            continue  # cut off as it was written
    return [found[view] for view in views if view in found]
