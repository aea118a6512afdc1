"""Small files of JSON that are there whole: who dies while one is written leaves the one before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def write_json(path: Path, said: Any) -> None:
    """Write a file beside, in the folder that is made where it is missing, and rename it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.new")
    beside.write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    beside.replace(path)
