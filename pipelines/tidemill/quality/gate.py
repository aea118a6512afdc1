"""The gate, from a lake to an answer: checks made, docs written, results stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tidemill.config.settings import Clock
from tidemill.lake.catalog import Lake
from tidemill.lake.lock import gate_folder
from tidemill.lake.schema.creation import new_generation
from tidemill.quality import results, suites, validation_run


def gate(lake: Lake, clock: Clock, docs: Path | None, wait: float) -> dict[str, Any]:
    """Check the pipeline's tables and store what was found; return it, `ok` where all is as
    expected.

    Data Docs are written into `docs`, by default `_quality/docs` of a lake's folder; into none for
    a catalog.
    """
    run, at = new_generation(), clock.now().replace(microsecond=0)
    own = gate_folder(lake.place)
    place = docs or (own and own / "docs")
    usual = results.earlier(lake, suites.EVENTS_PER_HOUR)
    checks = validation_run.checked(suites.assets(lake, clock, usual), run, place)
    results.store(lake, run, at, checks, wait)
    return {
        "pipeline": lake.pipeline.pipeline,
        "run": run,
        "at": at,
        "ok": all(check.ok for check in checks),
        "docs": str(place / "index.html") if place else None,
        "checks": [vars(check) for check in checks],
    }
