"""Delta's jars on this machine: resolved by Ivy the first time, named by their paths from then on.

Ivy takes seconds at each start to find that every jar is there. So what it found is written down
beside the jars, by the packages that were asked for, and taken while each file has its size.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

from tidemill.lake.session import local_machine

# Whose classes Spark has in jcl-over-slf4j and in RoaringBitmap.
_UNDER_OTHER_NAMES = frozenset({"commons-logging", "shims"})

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


def beyond_spark(jars: Sequence[Path]) -> list[Path]:
    """Return the jars of which Spark brings no version itself: on a class path the first one wins,
    and Spark's own are the ones that it was built with."""
    spark = {_artifact(path.name) for path in local_machine.spark_jars().glob("*.jar")}
    brought = {*spark, *_UNDER_OTHER_NAMES}
    return [path for path in jars if _artifact(path.name.partition("_")[2]) not in brought]


def _artifact(name: str) -> str:
    """Return `hadoop-client-api` for `hadoop-client-api-3.4.2.jar`."""
    return re.sub(r"-\d[\w.-]*\.jar$", "", name)


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
