"""Delta's jars on this machine: resolved by Ivy the first time, named by their paths from then on.

Ivy takes seconds at each start to find that every jar is there. So what it found is written down
beside the jars, by the packages that were asked for, and taken while each file has its size.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

log = logging.getLogger(__name__)


def resolved(ivy: Path, packages: Sequence[str]) -> list[Path] | None:
    """Return the jars that Ivy found for the packages before; None where it must look again."""
    try:
        sizes: Mapping[str, int] = json.loads(_record(ivy, packages).read_text(encoding="utf-8"))
        paths = {ivy / "jars" / name: size for name, size in sizes.items()}
        whole = bool(paths) and all(path.stat().st_size == paths[path] for path in paths)
    except (OSError, ValueError, AttributeError):
        return None
    return list(paths) if whole else None


def record(ivy: Path, packages: Sequence[str], jars: str) -> None:
    """Write down which jars Spark took for the packages, as its `spark.jars` lists them; of jars
    from elsewhere, and where the folder cannot be written, nothing."""
    paths = [Path(unquote(urlparse(url).path)) for url in jars.split(",") if url]
    ours = [path for path in paths if path.parent == ivy / "jars"]
    if not ours:
        return
    file = _record(ivy, packages)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        sizes = {path.name: path.stat().st_size for path in ours}
        file.parent.mkdir(exist_ok=True)
        beside.write_text(json.dumps(sizes, indent=1) + "\n", encoding="utf-8")
        beside.replace(file)
    except OSError as error:
        log.info("the jars' names are not kept: %s", error)


def _record(ivy: Path, packages: Sequence[str]) -> Path:
    name = hashlib.sha256(",".join(packages).encode()).hexdigest()[:16]
    return ivy / "tidemill" / f"{name}.json"
