"""How late events come: the seconds from event time to `ingested_at`, counted by class.

    in time   10 s   1 min   5 min   1 h   6 h   1 d   7 d   later
       └────────┴──────┴───────┴──────┴─────┴─────┴─────┴─────┘    each class up to its bound

Classes of several batches add up exactly, which a median does not. An event ahead of its arrival is
0 seconds late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

BOUNDS = (10, 60, 300, 3_600, 21_600, 86_400, 604_800)
BEYOND = "more"
CLASSES = (*map(str, BOUNDS), BEYOND)


def expression(event_time: str, where: str) -> str:
    """Return the SQL aggregate of the rows that count: how many within each bound, then the sum and
    the largest of their seconds."""
    late = f"greatest(unix_seconds(ingested_at) - unix_seconds({event_time}), 0L)"
    within = [f"count_if({where} AND {late} <= {bound})" for bound in BOUNDS]
    seconds = f"CASE WHEN {where} THEN {late} END"
    ends = [f"coalesce({f}({seconds}), 0L)" for f in ("sum", "max")]
    return f"array({', '.join([*within, *ends])})"


def added(counts: Iterable[Sequence[int]]) -> list[int]:
    """Return the aggregate over several parts' rows from those over each part."""
    nothing = (0,) * (len(BOUNDS) + 2)
    *within, most = zip(*counts, nothing, strict=True)
    return [*map(sum, within), max(most)]


def told(counted: Sequence[int], rows: int) -> dict[str, object]:
    """Return what a ledger says of `rows` rows and the aggregate over them: `late` by class,
    without empty ones, `late_seconds`, their sum, and `late_most`."""
    *within, total, most = counted
    each = [b - a for a, b in zip([0, *within], [*within, rows], strict=True)]
    late = {name: count for name, count in zip(CLASSES, each, strict=True) if count}
    return {"late": late, "late_seconds": total, "late_most": most}


def together(batches: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the classes of several batches as one, every class named."""
    sums = dict.fromkeys(CLASSES, 0)
    for late in batches:
        for name, count in late.items():
            sums[name] += count
    return sums


def at_most(late: Mapping[str, int], share: float) -> int | None:
    """Return the bound within which that share of the events came; None where it is beyond all
    bounds, or where there is no event."""
    wanted, so_far = share * sum(late.values()), 0
    for bound in BOUNDS:
        so_far += late.get(str(bound), 0)
        if so_far and so_far >= wanted:
            return bound
    return None
