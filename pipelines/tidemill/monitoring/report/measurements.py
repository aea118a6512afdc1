"""What `tidemill report` tells of a pipeline, as numbers.

tidemill_batches ─┐
ledgers beyond it ┴─► rows of some days ──► freshness, volumes, seconds, refusals, cost ...
logs and files ─────────────────────────► health of each table
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from tidemill.config.settings import EPOCH, Clock, iso
from tidemill.lake.batches import BatchRow
from tidemill.lake.catalog import Lake
from tidemill.lake.statements import statement
from tidemill.monitoring import table_health
from tidemill.monitoring.profile import kept_profiles
from tidemill.monitoring.profile.stack_parts import PARTS
from tidemill.pipeline import batch_log
from tidemill.pipeline.silver import lateness
from tidemill.training import kept_audits

MOST_BINS = 60
NEWEST = 30  # batches shown one by one
_BINS = tuple(timedelta(minutes=m) for m in (1, 5, 15, 30, 60, 180, 360, 720, 1440, 10_080))
Numbers = dict[str, Any]
Row = Mapping[str, Any]


def report(lake: Lake, clock: Clock, days: int) -> Numbers:
    """Return the numbers of the page, of the batches that were committed in the last days."""
    now = clock.now()
    rows = [row for row in _rows(lake, now - timedelta(days=days)) if row["query"] != "maintain"]
    return {
        "pipeline": lake.pipeline.pipeline,
        "lake": str(lake.place),
        "at": iso(now),
        "days": days,
        "freshness": [_fresh(lake, view.name, now) for view in lake.pipeline.views],
        "totals": _totals(rows),
        "over_time": list(_over_time(rows)),
        "seconds": list(_seconds(rows)),
        "refused": _refused(rows),
        "late": _late(rows),
        "profile": _profile(lake, now - timedelta(days=days)),
        "audits": kept_audits.newest(lake, [view.name for view in lake.pipeline.views]),
        "files": table_health.tables_of(lake),
        "batches": [_shown(row) for row in rows[-NEWEST:]][::-1],
    }


def _profile(lake: Lake, since: datetime) -> Numbers:
    """Return where the time of the newest profiled batch of each query went, and what each part
    took of all of them."""
    batches = [each for each in kept_profiles.since(lake, since) if each.batch is not None]
    newest = {each.query: each for each in batches}
    return {
        "newest": [
            {
                "query": each.query,
                "batch": each.batch,
                "started_at": iso(each.started_at),
                "stacks": [[list(stack), round(s, 4)] for (stack, _), s in each.stacks.items()],
            }
            for each in newest.values()
        ],
        "parts": [
            {
                "query": query,
                "part": part,
                "batches": len(ours),
                "median": _middle([each.parts.get(part, 0.0) for each in ours]),
            }
            for query in newest
            for ours in [[each for each in batches if each.query == query]]
            for part in PARTS
            if any(part in each.parts for each in ours)
        ],
    }


def _rows(lake: Lake, since: datetime) -> list[Row]:
    """Return the rows of `tidemill_batches`, and those it does not hold yet, oldest first."""
    names = [column.name for column in lake.tables.batches.columns]
    pipeline = lake.pipeline
    text = statement("batches_since", pipeline.views[0], source=pipeline.pipeline)
    kept = lake.ask(text, {"since": since})
    rows: list[Row] = [{**dict.fromkeys(names), **row} for row in kept.rows]
    beyond: list[BatchRow] = batch_log.since(lake, batch_log.recorded(lake))
    rows += [batch_log.as_row(lake, row) for row in beyond]
    return sorted(
        (row for row in rows if row["committed_at"] >= since), key=lambda row: row["committed_at"]
    )


def _fresh(lake: Lake, view: str, now: datetime) -> Numbers:
    state = lake.gold_state(lake.pipeline.view(view))
    age = round((now - state.as_of).total_seconds()) if state.as_of else None
    as_of = state.as_of and iso(state.as_of)
    return {"view": view, "as_of": as_of, "age_seconds": age, "gold_version": state.version}


def _totals(rows: Sequence[Row]) -> Numbers:
    clean = [row for row in rows if row["query"] == "clean"]
    names = ("events", "accepted", "quarantined", "duplicates")
    gold = [row for row in rows if row["as_of"]]
    backlog = {row["query"]: row["backlog"] for row in rows if row["backlog"] is not None}
    return {
        **{name: _sum(clean, name) for name in names},
        "keys_changed": _sum(gold, "keys_changed"),
        "refreshes": len(gold),
        "tick_seconds": _middle([_spent(row) for row in gold]),
        "backlog": sum(backlog.values()),
    }


def _over_time(rows: Sequence[Row]) -> Iterator[Numbers]:
    """Yield the rows in equal lengths of time, few enough to be seen; empty ones are left out."""
    if not rows:
        return
    first, last = rows[0]["committed_at"], rows[-1]["committed_at"]
    wanted = (last - first) / MOST_BINS
    length = next((each for each in _BINS if each >= wanted), _BINS[-1])
    by_start: dict[datetime, list[Row]] = {}
    for row in rows:
        at = row["committed_at"]
        by_start.setdefault(at - (at - EPOCH) % length, []).append(row)
    for start, bin_rows in by_start.items():
        yield {"start": iso(start), "length": int(length.total_seconds()), **_bin(bin_rows)}


def _bin(rows: Sequence[Row]) -> Numbers:
    clean = [row for row in rows if row["query"] == "clean"]
    gold = [row for row in rows if row["as_of"]]
    steps = sorted({name for row in [*clean, *gold] for name in row["seconds"] or {}})
    waiting: dict[str, int] = {}
    for row in rows:
        if row["backlog"] is not None and (row["query"] == "clean" or row["as_of"]):
            name = "clean" if row["query"] == "clean" else "feature"
            waiting[name] = max(waiting.get(name, 0), row["backlog"])
    ages: dict[str, int] = {}
    for row in gold:
        if row["freshness"] is not None:
            ages[row["view"]] = max(ages.get(row["view"], 0), row["freshness"])
    return {
        **{name: _sum(clean, name) for name in ("accepted", "quarantined", "duplicates")},
        "freshness": ages,
        "backlog": waiting,
        "keys_changed": _sum(gold, "keys_changed"),
        "merged": _added(row["merged"] for row in gold),
        "seconds": {s: _middle([v for _, _, step, v in _steps(rows) if step == s]) for s in steps},
    }


def _seconds(rows: Sequence[Row]) -> Iterator[Numbers]:
    """Yield what each step of each query took: median, 95 of 100, and most."""
    by_step: dict[tuple[str, str, str], list[float]] = {}
    for query, view, step, seconds in _steps(rows):
        by_step.setdefault((query, view, step), []).append(seconds)
    for (query, view, step), values in by_step.items():
        values.sort()
        high = values[min(len(values) - 1, round(0.95 * len(values)))]
        yield {
            "query": query,
            "view": view,
            "step": step,
            "batches": len(values),
            "median": _middle(values),
            "p95": round(high, 3),
            "most": round(values[-1], 3),
        }


def _steps(rows: Iterable[Row]) -> Iterator[tuple[str, str, str, float]]:
    for row in rows:
        for step, seconds in (row["seconds"] or {}).items():
            yield row["query"], row["view"] or "", step, seconds


def _refused(rows: Sequence[Row]) -> list[Numbers]:
    clean = [row for row in rows if row["query"] == "clean"]
    counts, records = _added(row["refused"] for row in clean), _sum(clean, "events")
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return [{"reason": n, "records": c, "share": c / records if records else 0} for n, c in ordered]


def _late(rows: Sequence[Row]) -> Numbers:
    classes = lateness.together(row["late"] or {} for row in rows)
    most = max((row["late_most"] or 0 for row in rows), default=0)
    half, high = (lateness.at_most(classes, share) for share in (0.5, 0.95))
    return {"classes": classes, "half_within": half, "p95_within": high, "most": most}


def _shown(row: Row) -> Numbers:
    names = ("query", "view", "batch", "events", "keys_changed", "backlog", "freshness")
    return {
        **{name: row[name] for name in names},
        "committed_at": iso(row["committed_at"]),
        "refused": row["quarantined"],
        "seconds": round(_spent(row), 3),
    }


def _spent(row: Row) -> float:
    return float(sum((row["seconds"] or {}).values()))


def _added(addends: Iterable[Mapping[str, int] | None]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for counts in addends:
        for name, count in (counts or {}).items():
            sums[name] = sums.get(name, 0) + count
    return sums


def _sum(rows: Iterable[Row], name: str) -> int:
    return sum(row[name] or 0 for row in rows)


def _middle(values: Sequence[float]) -> float:
    return round(median(values), 3) if values else 0.0
