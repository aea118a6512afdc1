"""The queries as data: which there are with an engine, whose tables and checkpoints they have."""

from __future__ import annotations

from importlib import import_module

import pytest

from tidemill.config import dataflow
from tidemill.config.pipeline_file import Triggers, load

ONE = ["land", "clean", "feature"]


def test_the_stateful_engine_adds_a_query_for_each_view() -> None:
    assert [query.checkpoint for query in dataflow.of("buckets", ["a", "b"])] == ONE
    both = [*ONE, "state_a", "state_b"]
    assert [query.checkpoint for query in dataflow.of("stateful", ["a", "b"])] == both
    assert [query.checkpoint for query in dataflow.of(None, ["a", "b"])] == both


def test_tables_by_their_roles() -> None:
    land, clean, feature, state = dataflow.of("stateful", ["b"])
    views = ["a", "b"]
    assert land.is_fed and not clean.is_fed
    assert clean.tables((clean.reads,), "plays", views) == ["plays_bronze"]
    assert clean.tables(clean.writes, "plays", views) == ["plays_events", "plays_quarantine"]
    assert feature.tables(feature.writes, "plays", views) == ["a_buckets", "b_buckets"]
    assert state.tables(state.writes, "plays", views) == ["b_features"], "its own view's"


@pytest.mark.parametrize("name", [*ONE, "state_titles", "state_by_state"])
def test_a_query_by_its_checkpoint(name: str) -> None:
    query = dataflow.by_checkpoint(name)
    assert query.checkpoint == name
    assert dataflow.is_query(name)
    assert query.view == (name.removeprefix("state_") if query.per_view else None)


def test_no_query_of_another_name() -> None:
    assert not dataflow.is_query("refresh")
    with pytest.raises(KeyError):
        dataflow.by_checkpoint("refresh")


def test_every_query_has_a_trigger_and_a_step() -> None:
    assert list(Triggers.model_fields) == [query.name for query in dataflow.QUERIES]
    assert dict(load("engagement").triggers)["land"]
    for query in dataflow.QUERIES:
        assert callable(import_module(query.step).start)
