"""What `diff` and `swap` print for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidemill.cli.output.display import Show

Found = Mapping[str, Any]


def show(display: Show, views: Sequence[Found]) -> None:
    """Print how the other generation differs from gold, view by view."""
    for facts in views:
        display.say(
            (facts["view"], "bold"),
            f"  {facts['different']:,} of {facts['keys']:,} keys differ at as_of {facts['as_of']}",
        )
        for word in ("only_in_gold", "only_in_other"):
            if facts[word]:
                display.say(f"{word.replace('_', ' ')}: {facts[word]:,} keys")
        for word in ("added", "removed", "changed_type"):
            if facts[word]:
                display.say(f"{word.replace('_', ' ')}: {', '.join(facts[word])}")
        others = [f for f in facts["features"] if f["different"]]
        if others:
            rows = [[one["feature"], f"{one['different']:,}"] for one in others]
            display.table(["feature", "keys that differ"], rows)
        examples = [row for one in facts["examples"] for row in _rows(one)]
        if examples:
            display.table(["key", "feature", "gold", "other"], examples)


def swapped(display: Show, done: Found) -> None:
    """Print what a swap has changed in gold."""
    for view in done["views"]:
        display.say((view["view"], "bold"), f"  {view['keys_changed']:,} keys changed in gold")
    display.say(f"generation {done['generation']}; {done['before']} lies beside it now")


def _rows(example: Found) -> list[list[str]]:
    key = ", ".join(str(value) for value in example["key"].values())
    return [
        [key, feature, str(pair["gold"]), str(pair["other"])]
        for feature, pair in example["values"].items()
    ]
