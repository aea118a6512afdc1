"""A page as data: what stands on it, before it is HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from tidemill.monitoring.report import html
from tidemill.monitoring.report.html import Section
from tidemill.query.json_values import json_of, text_of

if TYPE_CHECKING:
    import jinja2


@dataclass(frozen=True)
class Card:
    """A number at the top of a page."""

    number: str
    what: str
    href: str | None = None


@dataclass(frozen=True)
class Button:
    """A form that does something: where it is sent, what it sends, what it asks for."""

    label: str
    action: str
    fields: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)  # label by name
    get: bool = False


@dataclass(frozen=True)
class Page:
    """A page: title, a sentence, cards, sections, buttons; `refresh` loads it again after so many
    seconds."""

    title: str
    what: str
    cards: Sequence[Card] = ()
    sections: Sequence[Section] = ()
    buttons: Sequence[Button] = ()
    refresh: int | None = None


def rendered(
    page: Page, *, pipeline: str | None, lake: str, guard: str, root: str, several: bool
) -> str:
    """Return the page as HTML; `guard` goes with each form, so that no other page can send it.

    Links are paths of the page's pipeline, which stand below `root`; a page of several pipelines
    has none of its own.
    """
    return template().render(
        page=page, pipeline=pipeline, lake=lake, guard=guard, root=root, several=several
    )


def template() -> jinja2.Template:
    """Return what renders a page; compiled once."""
    return html.environment(Path(__file__).parent).get_template("page.html")


def of_view(view: str) -> str:
    """Return the path of a view's page."""
    return f"/views/{quote(view, safe='')}"


def of_key(view: str, key: Mapping[str, object]) -> str:
    """Return the path of a key's page."""
    return f"{of_view(view)}/key?{urlencode({name: str(value) for name, value in key.items()})}"


def cell(value: Any) -> Any:
    """Return a value as a cell: numbers, texts and None as they are, a truth and what holds several
    values as JSON, everything else, such as a time, as its text."""
    if isinstance(value, bool | Mapping | list | tuple):
        return json_of(value)
    return value if isinstance(value, int | float | str | None) else text_of(value)
