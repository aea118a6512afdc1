"""A view's page: its features, how their values lie, and how far that moved in a week."""

from __future__ import annotations

from collections.abc import Iterator

from tidemill.monitoring.pages.content import Button, Card, Page, cell, of_key, of_view
from tidemill.monitoring.pages.lake_reads import Facts, LakeReads
from tidemill.monitoring.report.html import Link, Section, Table, section
from tidemill.monitoring.status import span

SHIFTED = 0.25
_PLOTS = 6
_TIMES = {"now": "now", "before": "then"}
_SHOWN = ("feature", "type", "window", "what", "empty")


def feature_view(lake: LakeReads, name: str) -> Page:
    """Return the page of a view."""
    facts, lies = lake.describe(name), lake.distribution(name)
    age = facts["age_seconds"]
    shifted = [each["feature"] for each in lies["features"] if (each["drift"] or 0) > SHIFTED]
    keys = lies["now"]["keys"] if lies["now"] else 0
    cards = [
        Card("never" if age is None else f"{span(age)} old", f"as of {facts['as_of'] or '-'}"),
        Card(f"{keys:,}", "keys in gold"),
        Card(f"{len(facts['features'])}", f"features; bucket {facts['bucket']}"),
        Card(f"{len(shifted)}", "features have shifted"),
    ]
    buttons = [
        Button("Show key", f"{of_view(name)}/key", inputs={k: k for k in facts["keys"]}, get=True),
        Button("Reconcile", "/reconcile"),
    ]
    what = f"Keys: {', '.join(facts['keys'])}. Gold's version {facts['gold_version']}."
    sections = [_features(facts, lies), *_plots(lies), _some_keys(lake, facts)]
    return Page(name, what, cards, sections, buttons)


def _features(facts: Facts, lies: Facts) -> Section:
    drift = {each["feature"]: each["drift"] for each in lies["features"]}
    rows = [
        [*(each[word] for word in _SHOWN), drift.get(each["feature"])] for each in facts["features"]
    ]
    what = "Gold has no earlier version to compare with."
    if then := lies["then"]:
        since = f"gold's version {then['gold_version']}, as of {then['as_of']}"
        what = f"Drift against {since}: below 0.1 is little, above {SHIFTED} a shift."
    return Section("Features", what, Table([*_SHOWN, "drift"], rows))


def _plots(lies: Facts) -> Iterator[Section]:
    """Yield how the values lie: of the features that moved most, then in their order."""
    order = sorted(lies["features"], key=lambda each: -(each["drift"] or 0))
    for each in order[:_PLOTS]:
        times = {when: each[time] for when, time in _TIMES.items() if each[time]}
        counted = list(zip(lies["classes"], *times.values(), strict=True))
        filled = [place for place, row in enumerate(counted) if any(row[1:])]
        rows = counted[filled[0] : filled[-1] + 1] if filled else []
        yield section(
            f"Values of {each['feature']}",
            "Keys by value" + ("" if each["drift"] is None else f"; drift {each['drift']:.3f}."),
            ["value", *times],
            rows,
            kind="bar",
            y=[*times],
            labels={"value": "keys"} if len(times) > 1 else {"now": "keys"},
            empty="Gold has no rows.",
            small=True,
        )


def _some_keys(lake: LakeReads, facts: Facts) -> Section:
    """Return the keys that changed last."""
    rows = []
    for row in lake.newest_keys(facts["view"]):
        key = {name: row[name] for name in facts["keys"]}
        shown = " ".join(str(value) for value in key.values())
        rows.append([Link(shown, of_key(facts["view"], key)), cell(row["updated_at"])])
    return Section(
        "Keys that changed last",
        "A key leads to its values, and to the buckets and events behind them.",
        Table(["key", "updated"], rows),
        empty="" if rows else "Gold has no rows.",
    )
