"""The error that a pipeline's last run ended with: kept in the lake until one ends well."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidemill.config.settings import Clock, Place, iso
from tidemill.errors import TidemillError

NAME = "_tidemill_errors.json"  # of each pipeline the error; of a lake in a catalog nothing is kept


@contextmanager
def kept(place: Place, pipeline: str, clock: Clock) -> Iterator[None]:
    """Keep the error that comes out of a run, which holds the lake's lock; forget the one before
    where none does."""
    try:
        yield
    except TidemillError as error:
        _keep(place, pipeline, {"at": iso(clock.now()), **error.as_dict()})
        raise
    _keep(place, pipeline, None)


def newest(place: Place, pipeline: str) -> dict[str, Any] | None:
    """Return `{at, kind, message, where, expected}` of the last run's error; None where it ended
    well, or none has run."""
    found: dict[str, Any] | None = _read(place).get(pipeline)
    return found


def _keep(place: Place, pipeline: str, error: dict[str, Any] | None) -> None:
    root, known = place.folder, _read(place)
    if root is None or known.get(pipeline) == error:
        return
    others = {name: each for name, each in known.items() if name != pipeline}
    known = {**others, pipeline: error} if error else others
    path = root / NAME
    with contextlib.suppress(OSError):  # it tells of a run, and is no reason to fail one
        if known:
            beside = path.with_suffix(".part")
            beside.write_text(json.dumps(known), encoding="utf-8")
            beside.replace(path)
        else:
            path.unlink(missing_ok=True)


def _read(place: Place) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads(Path(place.folder or ".", NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if place.folder is not None and isinstance(found, dict) else {}
