"""Any events, in any order, split and repeated in any way: gold is the oracle at every as_of.

Two forms. In the long one every batch goes through the MERGE; in the short one each batch is
appended and gold's query is compared at every batch's as_of, so that more schedules can be tried.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

import oracle
from lakes import Event, Lakes, TestLake, at, payload
from tidemill.lake.parameters import ask
from tidemill.lake.statements import statement
from tidemill.pipeline.silver import minute_buckets

EDGES = [0, 1, 59, 60, 61, 719, 720, 721, 1439, 1440, 1441]  # minutes before noon, around each edge
SETTINGS = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)

minutes = st.one_of(st.sampled_from(EDGES), st.integers(0, 1600))
times = st.builds(
    lambda before, second: at("12:00") - timedelta(minutes=before, seconds=-second),
    minutes,
    st.sampled_from([0, 0.001, 30, 59.999]),
).filter(lambda time: time <= at("12:04"))
rows = st.tuples(st.sampled_from("pq"), st.sampled_from("gh"), st.sampled_from(oracle.TYPES), times)
junk = st.sampled_from(["{bad", "[]", "{}", '{"profile_id": 1}'])


@st.composite
def schedules(draw: st.DrawFn, largest: int) -> list[list[Event | str]]:
    """Batches of events and junk; some events come again, in the same or a later batch."""
    found = draw(st.lists(rows, min_size=1, max_size=largest))
    events: list[Event | str] = [(f"e{n}", *row) for n, row in enumerate(found)]
    again = draw(st.lists(st.sampled_from(events), max_size=4))
    everything = draw(st.permutations([*events, *again, *draw(st.lists(junk, max_size=3))]))
    cuts = sorted(draw(st.lists(st.integers(0, len(everything)), min_size=1, max_size=2)))
    edges = [0, *cuts, len(everything)]
    return [list(everything[a:b]) for a, b in pairwise(edges)]


def texts(batch: Sequence[Event | str]) -> list[str]:
    return [one if isinstance(one, str) else payload(one) for one in batch]


def fresh(spark: SparkSession, template: Path) -> TestLake:
    return Lakes(spark, Path(tempfile.mkdtemp()), template).new()


def test_any_schedule_gives_the_oracles_gold(spark: SparkSession, empty_lake: Path) -> None:
    @settings(SETTINGS, max_examples=4)
    @given(schedules(largest=12))
    def holds(batches: list[list[Event | str]]) -> None:
        lake, known = fresh(spark, empty_lake), []
        for batch in batches:
            note(repr(batch))
            lake.step(texts(batch))
            known += [one for one in batch if not isinstance(one, str)]
            now = oracle.as_of(known)
            assert lake.gold() == (oracle.features(known, now) if now else {})

    holds()


def test_any_schedule_gives_the_oracles_features(spark: SparkSession, empty_lake: Path) -> None:
    @settings(SETTINGS, max_examples=10)
    @given(schedules(largest=40))
    def holds(batches: list[list[Event | str]]) -> None:
        lake, known = fresh(spark, empty_lake), []
        for number, batch in enumerate(batches):
            known += oracle.distinct(known + [e for e in batch if not isinstance(e, str)])[
                len(known) :
            ]
            append(lake, number, known, batch)
        for number in range(len(batches)):
            then = [e for batch in batches[: number + 1] for e in batch if not isinstance(e, str)]
            now = oracle.as_of(then)
            if now is not None:
                assert features(lake, number, now) == oracle.features(then, now)

    holds()


def append(lake: TestLake, number: int, known: list[Event], batch: Sequence[Event | str]) -> None:
    """Append the buckets of the batch's new events: those that clean would have accepted."""
    from lakes import events_frame

    before = lake.records
    lake.records = len(known)
    minute_buckets.bucket(
        events_frame(lake.spark, known[before:]), number, lake=lake.lake, view=lake.view
    )


def features(lake: TestLake, batch: int, now: datetime) -> dict[oracle.Key, oracle.Row]:
    sql = statement("features", lake.view)
    found = ask(lake.spark, sql, {"as_of": now, "batch": batch}).collect()
    return {
        (row["profile_id"], row["gti"]): {name: row[name] for name in oracle.COLUMNS}
        for row in found
    }


def test_the_oracle_by_hand() -> None:
    """The oracle itself, on a case that a reader can count."""
    events = [
        ("a", "p", "g", "view", at("09:59:59")),
        ("a", "p", "g", "view", at("09:59:59")),
        ("b", "p", "g", "view", at("10:00")),
        (None, "p", "g", "select", at("20T11:00")),
    ]
    found = oracle.features(events, at("11:00"))["p", "g"]
    assert found == {
        **dict.fromkeys(oracle.COLUMNS, 0),
        "view_count_1d": 2,
        "view_count_12h": 2,
        "view_count_1h": 1,
        "select_count_1d": 1,
    }
    assert oracle.as_of(events) == datetime(2026, 11, 21, 10, 1, tzinfo=timezone.utc)
