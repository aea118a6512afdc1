"""What `recompute` prints for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tidemill.cli.output.display import Show

Found = Mapping[str, Any]
_OPEN = ("gold", "buckets")  # causes that a repair mends


def telling(show: Show) -> Callable[[Found], None]:
    """Return what prints a day that was recomputed."""

    def tell(day: Found) -> None:
        unit, than = ("rows", "the stream's") if day["kind"] == "stream" else ("keys", "before")
        causes = ", ".join(f"{number:,} {cause}" for cause, number in day["causes"].items())
        differs = f"{day['different']:,} other than {than}: {causes}" if causes else "no difference"
        why = "" if day["why"] == "new" else f"  ({day['why']})"
        show.say((day["name"], "bold"), f"  {day['day']}  {day['rows']:,} {unit}, {differs}{why}")

    return tell


def nothing(show: Show, days: Sequence[Found]) -> None:
    """Say that no day was due, where that is so."""
    if not days:
        show.say("no day is due: nothing new is over, and no late event came")


def is_wrong(day: Found, *, repaired: bool) -> bool:
    """Return whether something differed that nobody has corrected, or explained."""
    causes = day["causes"]
    return "unexplained" in causes or (not repaired and any(cause in causes for cause in _OPEN))
