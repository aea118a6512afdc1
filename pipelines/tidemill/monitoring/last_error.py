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
from tidemill.lake.integrity.whole_file import write_json

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
    return _read(place.folder).get(pipeline) if place.folder is not None else None


def _keep(place: Place, pipeline: str, error: dict[str, Any] | None) -> None:
    if place.folder is None:
        return
    path, known = place.folder / NAME, _read(place.folder)
    if known.pop(pipeline, None) == error:
        return
    if error:
        known[pipeline] = error
    with contextlib.suppress(OSError):  # it tells of a run, and is no reason to fail one
        if known:
            write_json(path, known)
        else:
            path.unlink(missing_ok=True)


def _read(folder: Path) -> dict[str, dict[str, Any]]:
    try:
        found = json.loads((folder / NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
