"""How a command prints what it found: for people, or one JSON object."""

from __future__ import annotations

from typing import Any

from tidemill.cli.output.terminal import print_lines
from tidemill.query.json_values import json_of, text_of


def showing(as_json: bool) -> Any:
    """Return what shows progress and tables; silent where stdout is for JSON."""
    from tidemill.cli.output.display import Show

    return Show(quiet=as_json)


def print_one(as_json: bool, result: dict[str, Any], show: Any) -> None:
    """Print `result` as JSON, or call what shows it."""
    if as_json:
        print(json_of(result))
    else:
        show()


def print_each(as_json: bool, results: list[dict[str, Any]]) -> None:
    """Print one view's result as the object itself, several as a list of them."""
    if as_json:
        document: Any = results[0] if len(results) == 1 else {"views": results}
        print(json_of(document))
        return
    for result in results:
        print_lines(["  ".join(f"{name} {text_of(value)}" for name, value in result.items())])
