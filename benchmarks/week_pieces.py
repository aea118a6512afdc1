"""A week of ticks of a minute in pieces, each on the machine that there was for it.

    folder of week.py, line a tick ──piece()──► week-minutes.jsonl, line a piece ──► table, picture

Ten thousand ticks take longer than this machine is to be had. So a piece ends where its machine
does; the next one begins, on another lake and perhaps another day, with the events that still count
(`week.py --from TICK`). What must not grow is judged within a piece: its last third by its second.
All pieces are kept beside the picture, by the hour, so that a new one may be added to them.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import week
from measuring import CURVES, say, wish, write

KEPT = CURVES / "week-minutes.jsonl"
NAME = "week-minutes"
PARTS = 3  # of a piece: the first warms up
ROUNDED = 3  # digits of an hour's medians


def hours(records: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the median of each hour of ticks, under the names of the table's lines."""
    plan, _ = week.plan_of(records)
    ticks = week.ticks_of(records)
    for start in range(0, len(ticks), week.HOUR // plan.step):
        part = ticks[start : start + week.HOUR // plan.step]
        found = {name: week.middle(part, value) for name, (value, _, _) in week.LINES.items()}
        yield {"tick": part[0]["tick"], "ticks": len(part)} | {
            name: round(value, ROUNDED) for name, value in found.items()
        }


def piece(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return one piece: where it began and ended, on what, what was found wrong, and its hours."""
    ticks = week.ticks_of(records)
    checks = [record["check"] for record in records if "check" in record]
    if not checks or checks[-1]["ticks"] != ticks[-1]["tick"] + 1:
        sys.exit(
            "gold was not compared after the last tick: "
            f"run week.py --ticks {ticks[-1]['tick'] + 1} in that folder"
        )
    return {
        "from": ticks[0]["tick"],
        "to": ticks[-1]["tick"] + 1,
        "machine": next(record["machine"] for record in records if "machine" in record),
        "different": checks[-1]["different"],
        "wrong": checks[-1]["wrong"],
        "hours": [*hours(records)],
    }


def read() -> list[dict[str, Any]]:
    """Return the pieces that are kept, in order."""
    if not KEPT.exists():
        return []
    return [json.loads(line) for line in KEPT.read_text(encoding="utf-8").splitlines()]


def keep(pieces: Sequence[dict[str, Any]]) -> None:
    text = "".join(json.dumps(each) + "\n" for each in pieces)
    KEPT.write_text(text, encoding="utf-8")


def added(pieces: Sequence[dict[str, Any]], new: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pieces with a new one in the place of what began at the same tick."""
    others = [each for each in pieces if each["from"] != new["from"]]
    return sorted([*others, new], key=lambda found: found["from"])


# -- report --------------------------------------------------------------------------------------


def report(pieces: Sequence[dict[str, Any]]) -> str:
    """Return what was measured, as Markdown: a column for each piece."""
    done = sum(each["to"] - each["from"] for each in pieces)
    names = [f"ticks {each['from'] + 1:,} to {each['to']:,}" for each in pieces]
    lines = [
        f"{done:,} of {7 * week.DAY:,} ticks of a minute, in pieces; medians of the hours of a "
        "piece's second third, of its last third, and their ratio.",
        "",
        f"| | {' | '.join(names)} |",
        f"|---|{'---:|' * len(pieces)}",
    ]
    for what, (_, form, most) in week.LINES.items():
        cells = [judged(each["hours"], what, form, most) for each in pieces]
        lines.append(f"| {what} | {' | '.join(cells)} |")
    for what, name in (("the recompute", "different"), ("DuckDB's count", "wrong")):
        cells = [str(each[name]) for each in pieces]
        lines.append(f"| keys that differ from {what} | {' | '.join(cells)} |")
    lines.append("")
    lines += [f"- {name}: {each['machine']}" for name, each in zip(names, pieces, strict=True)]
    return "\n".join(lines) + "\n"


def judged(hours: Sequence[dict[str, Any]], what: str, form: str, most: float | None) -> str:
    third = len(hours) // PARTS
    if not third:
        sys.exit(f"{len(hours)} hours are too few for a piece")
    before, after = (
        statistics.median(hour[what] for hour in part)
        for part in (hours[third : 2 * third], hours[-third:])
    )
    ratio = f", {wish(after / before, most)}" if before else ""
    return f"{form.format(before)}, {form.format(after)}{ratio}"


def draw(pieces: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw seconds, files and memory by the hour, the pieces one after the other."""
    panels = {
        "seconds": ["seconds a tick", "seconds of CPU a tick"],
        "files": ["files of the newest versions", "files of the logs"],
        "MiB": ["memory of Python and JVM, MiB"],
    }
    every = [hour for each in pieces for hour in each["hours"]]
    charts = [
        week.plotting.chart(
            ["day", *names],
            [[hour["tick"] / week.DAY, *(hour[name] for name in names)] for hour in every],
            kind="line",
            x="day",
            y=names,
            labels={"value": unit} if len(names) > 1 else {},
            height=140,
        )
        for unit, names in panels.items()
    ]
    week.stack(charts, path)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--folder", type=Path, help="of week.py: the piece to add")
    options.add_argument("--write", action="store_true", help="keep it, and into the document")
    asked = options.parse_args()
    pieces = read()
    if asked.folder:
        pieces = added(pieces, piece(week.read(asked.folder / week.RECORDS)))
    if not pieces:
        sys.exit("no piece is kept yet: --folder names the one to begin with")
    print(table := report(pieces))
    picture = (CURVES if asked.write else Path(tempfile.gettempdir())) / f"{NAME}.png"
    draw(pieces, picture)
    say(f"the picture is {picture}")
    if asked.write:
        keep(pieces)
        write(f"{table}\n![A week of ticks of a minute](curves/{NAME}.png)\n", NAME)


if __name__ == "__main__":
    main()
