"""Every table of a lake is declared once, and computed once for a definition."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from tidemill.config.pipeline_file import load, shipped
from tidemill.config.settings import Place
from tidemill.lake import tables
from tidemill.lake.catalog import Lake

SHIPPED = load("engagement")


def lake() -> Lake:
    return Lake(None, Place(Path("lake")), SHIPPED, "g", "l")  # type: ignore[arg-type]


def test_the_others_are_those_that_are_made_when_first_needed() -> None:
    declared = tables.of(SHIPPED)
    assert [table.name for table in declared.optional] == [
        "engagement_hours",
        "engagement_history",
        "engagement_batch",
        "engagement_replays",
        "engagement_alerts",
        "tidemill_quality",
        "tidemill_profiles",
    ]
    assert [table.name for table in declared.shared] == [
        "tidemill_batches",
        "tidemill_quality",
        "tidemill_profiles",
    ]


def test_the_engine_says_whether_a_lake_has_arrivals() -> None:
    stateful = tables.of(SHIPPED.overridden({"engine": "stateful"}))
    (view,) = SHIPPED.views
    assert stateful.of(view).arrivals in stateful.required
    assert tables.of(SHIPPED).of(view).arrivals not in tables.of(SHIPPED).required


def test_an_equal_definition_has_the_same_tables() -> None:
    assert tables.of(load("engagement")) is tables.of(SHIPPED)
    other = SHIPPED.overridden({"max_files_per_trigger": 7})
    assert tables.of(other) is not tables.of(SHIPPED) and tables.of(other) == tables.of(SHIPPED)


def test_a_lake_of_another_definition_has_its_tables() -> None:
    one = lake()
    assert one.tables is one.tables
    stateful = replace(one, pipeline=SHIPPED.overridden({"engine": "stateful"}))
    assert len(stateful.tables.required) == len(one.tables.required) + 1


@pytest.mark.parametrize("name", shipped())
def test_a_definition_goes_to_another_process(name: str) -> None:
    definition = load(name)
    assert all(view.columns for view in definition.views)
    assert pickle.loads(pickle.dumps(definition)) == definition


def test_a_lake_goes_to_another_process_without_them() -> None:
    one = lake()
    assert one.tables.events.name == "engagement_events"
    assert "tables" not in one.__getstate__()
    assert pickle.loads(pickle.dumps(one)).tables == one.tables
