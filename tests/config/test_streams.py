"""What a pipeline's file may say of streams, and each mistake with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from stream_lakes import SIDES, WORDS, declared, join
from tidemill.config.pipeline_file import read
from tidemill.errors import DefinitionError
from tidemill.lake import tables

SESSIONS: dict[str, Any] = {"keys": ["item"], "gap": "30m", "watermark": "10m", "page": "kind"}
TOTALS: dict[str, Any] = {"length": "10m", "watermark": "10m", "compute": {"n": "count"}}
DISTINCT: dict[str, Any] = {"keys": ["item"], "watermark": "10m"}


def test_a_stream_has_a_query_and_a_table_called_as_it() -> None:
    definition = declared(
        [{"name": "answered", "join": join()}, {"name": "shop", "distinct": DISTINCT}]
    )
    names = [query.checkpoint for query in definition.queries_of("buckets")]
    assert names == ["land", "clean", "feature", "stream_answered", "stream_shop"]
    required = [table.name for table in tables.of(definition).required]
    assert required[-3:] == ["answered", "shop", "tidemill_batches"]
    answered, shop = (tables.of(definition).streams[name] for name in ("answered", "shop"))
    assert (
        answered.column_names
        == (
            "item ask_at ask_record_id ask_price buy_at buy_record_id buy_price matched "
            "seconds_between event_id at batch event_hour"
        ).split()
    )
    assert shop.column_names == ["item", "event_id", "at", "batch", "event_hour"]


def side(word: str, **words: Any) -> dict[str, Any]:
    return join(**{word: {**SIDES[word], **words}})


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ({}, "stream s has one of join, distinct, span, sessions, totals, process"),
        (
            {"join": join(), "distinct": DISTINCT},
            "stream s has one of join, distinct, span, sessions, totals, process",
        ),
        ({"join": join(), "name": "items"}, "stream 'items' is called as a view, a dimension or"),
        ({"join": join(), "name": "s_events"}, "a stream's name may not end with _events"),
        ({"join": join(), "name": "tidemill_s"}, "a stream's name may not begin with tidemill_"),
        ({"join": join(keys=[])}, "at least 1 item"),
        ({"join": join(keys=["itm"])}, r"the event has no column 'itm'.*item"),
        ({"join": {k: v for k, v in join().items() if k != "within"}}, "Field required"),
        ({"join": {k: v for k, v in join().items() if k != "keys"}}, "Field required"),
        ({"join": join(kind="cross")}, "'inner', 'left', 'right' or 'full'"),
        ({"join": join(within="1 hour")}, "is no length of time"),
        ({"join": join(within="400d")}, "within may be 366d at most"),
        ({"join": join(policy="mean")}, "'min' or 'max'"),
        ({"join": side("left", watermark="400d")}, "a watermark may be 366d at most"),
        ({"join": side("left", where="kind")}, "'kind' is no condition"),
        ({"join": side("right", where="knd = 'buy'")}, r"unknown column 'knd'.*kind"),
        ({"join": side("left", columns=["item"])}, "'item' is a key"),
        ({"join": side("left", columns=["price", "price"])}, "'price' stands twice"),
        ({"join": side("right", name="ASK")}, "both sides are called ask"),
        ({"join": side("right", waermark="1m")}, "unknown word 'waermark'.*watermark"),
        ({"distinct": {**DISTINCT, "columns": ["item"]}}, "'item' is a key: the row has it"),
        ({"sessions": {**SESSIONS, "page": "price"}}, "page price is bigint, expected string"),
        ({"sessions": {**SESSIONS, "gap": "0m"}}, "is no length of time"),
        ({"sessions": {**SESSIONS, "gap": "400d"}}, "a gap may be 366d at most"),
        ({"sessions": {**SESSIONS, "columns": ["price"]}}, "a session has no columns of single"),
        (
            {"sessions": {**SESSIONS, "gap_by": {"of": "price", "gaps": {"1": "1m"}}}},
            "its values are texts",
        ),
        ({"sessions": SESSIONS, "max_state_rows": 5}, "`sessions` has no state, so no limit of it"),
        ({"totals": {**TOTALS, "every": "11m"}}, "every 11m must be at most the length"),
        ({"totals": {**TOTALS, "length": "1d", "every": "1s"}}, "and a 1000th at least"),
        ({"totals": {**TOTALS, "watermark": None}}, "totals of events need a watermark"),
        ({"totals": {**TOTALS, "of": "buy"}}, "there is no join of which it could be a side"),
        ({"totals": {**TOTALS, "compute": {"n": {"sum": "kind"}}}}, "sum is of numbers"),
        ({"totals": {**TOTALS, "compute": {"n": {"sum": "pric"}}}}, "no column 'pric'.*price"),
        (
            {"totals": {**TOTALS, "compute": {"n": {"median": "price"}}}},
            "unknown function 'median'.*mean",
        ),
        ({"totals": {**TOTALS, "compute": {"n": "counts"}}}, "takes count, or a function of a"),
        ({"totals": {**TOTALS, "compute": {"window_start": "count"}}}, "is called window_start"),
        ({"totals": {**TOTALS, "compute": {}}}, "at least 1 item"),
        ({"totals": {**TOTALS, "compute": {"batch": "count"}}}, "is called batch already"),
        ({"totals": {**TOTALS, "compute": {"n": "count", "N": "count"}}}, "is called N already"),
        ({"span": {"keys": ["item"], "watermark": "1m"}}, "nothing is too late for first and last"),
        ({"span": {"keys": ["itm"]}}, "the event has no column 'itm'"),
        (
            {"span": {"keys": ["item"]}, "max_state_rows": 5},
            "`span` has no state, so no limit of it",
        ),
        ({"totals": {**TOTALS, "partition": "kind"}}, "'kind' is none of the keys"),
        (
            {"totals": {**TOTALS, "then": {"length": "15m", "compute": {"a": {"mean": "n"}}}}},
            "its length must be several of 10m, found 15m",
        ),
        (
            {"totals": {**TOTALS, "then": {"length": "1h", "compute": {"a": {"mean": "m"}}}}},
            "no column 'm'",
        ),
        ({"join": join(), "totals": TOTALS}, "watermark is said by the sides of the join"),
        (
            {"join": join(), "totals": {"length": "1h", "compute": {"n": "count"}}},
            "totals behind a join say by whose time: of: ask or buy",
        ),
        (
            {"join": join(kind="left"), "totals": {"length": "1h", "compute": {"n": "count"}}},
            "totals are of pairs: kind: inner",
        ),
        ({"join": join(), "sessions": SESSIONS}, "only totals may stand behind a join"),
        ({"distinct": DISTINCT, "max_state_rows": 0}, "greater than or equal to 1"),
    ],
)
def test_a_mistake_is_told_with_its_line(
    tmp_path: Path, stream: dict[str, Any], message: str
) -> None:
    path = tmp_path / "shop.yaml"
    words = {**WORDS, "streams": [{"name": "s", **stream}]}
    path.write_text(yaml.safe_dump(words, sort_keys=False))
    with pytest.raises(DefinitionError, match=message) as told:
        read(path)
    assert "shop.yaml:" in told.value.where


def test_two_streams_of_one_name_and_two_columns_of_one(tmp_path: Path) -> None:
    path = tmp_path / "shop.yaml"
    twice = [{"name": name, "join": join()} for name in ("answered", "Answered")]
    path.write_text(json.dumps({**WORDS, "streams": twice}))
    with pytest.raises(DefinitionError, match="stream 'Answered' is called as a view"):
        read(path)
    schema = {**WORDS["views"][0]["schema"], "ask_at": "string"}
    words = {**WORDS, "views": [{**WORDS["views"][0], "schema": schema}]}
    clash = {"name": "s", "join": join(keys=["ask_at"])}
    path.write_text(json.dumps({**words, "streams": [clash]}))
    with pytest.raises(DefinitionError, match="two columns of stream s would be called ask_at"):
        read(path)
