"""How a command prints what it found: for people, or one JSON object."""

from __future__ import annotations

import json
from typing import Any

from tidemill.settings import iso


def showing(as_json: bool) -> Any:
    """Yield what shows progress and tables; silent where stdout is for JSON."""
    from tidemill.showing import Show

    return Show(quiet=as_json)


def print_one(as_json: bool, found: dict[str, Any], show: Any) -> None:
    """Print `found` as JSON, or call what shows it."""
    if as_json:
        print(json.dumps(found, default=text_of, ensure_ascii=False))
    else:
        show()


def print_each(as_json: bool, results: list[dict[str, Any]]) -> None:
    """Print one view's result as the object itself, several as a list of them."""
    if as_json:
        found: Any = results[0] if len(results) == 1 else {"views": results}
        print(json.dumps(found, default=text_of))
        return
    for result in results:
        print("  ".join(f"{name} {text_of(value)}" for name, value in result.items()))


def text_of(value: Any) -> str:
    """Yield a value as JSON and lines hold it: times as `2026-11-21T10:05:00Z`."""
    return iso(value) if hasattr(value, "tzinfo") else str(value)
