"""Views published into a store by hand, without Spark, and a server of them in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import xxhash
from starlette.testclient import TestClient

from tidemill.config.settings import Clock, micros_of
from tidemill.online import packing
from tidemill.online.answers.feature_service import FeatureService
from tidemill.online.answers.limits import Limits
from tidemill.online.open_store import open_store
from tidemill.online.published_view import PublishedView
from tidemill.online.server.application import application
from tidemill.online.server.request_metrics import RequestMetrics
from tidemill.online.server.response_log import ResponseLog
from tidemill.online.server.tokens import Tokens
from tidemill.online.store import Entry, OnlineStore

AS_OF = datetime(2026, 11, 21, 10, 5, tzinfo=timezone.utc)
NOW = AS_OF + timedelta(seconds=12.5)
LAST = datetime(2026, 11, 21, 10, 4, 30, tzinfo=timezone.utc)


def cuckoo_of(*values: str, bits: int = 16, buckets: int = 4) -> list[Any]:
    """A cuckoo filter as a row has it, by the formula of its documentation."""
    codes = []
    for value in values:
        hashed = xxhash.xxh64_intdigest(value.encode(), seed=42)
        mark, first = (hashed >> 40) & (2**bits - 1), hashed & (buckets - 1)
        second = first ^ ((mark * 0x5BD1E995) & (buckets - 1))
        codes.append(min(first, second) * 2**bits + mark)
    return [bits, buckets, sorted(codes)]


CARDS = PublishedView(
    view="cards",
    pipeline="cards",
    keys={"bank": "bigint", "card": "string"},
    features={
        "count_1d": "BIGINT",
        "sum_1d": "DECIMAL(38,2)",
        "last_1d": "TIMESTAMP",
        "shops_most_frequent_1d": "ARRAY<STRUCT<item: STRING, count: BIGINT>>",
        "shops_cuckoo_1d": "STRUCT<fingerprint: INT, buckets: INT, codes: ARRAY<BIGINT>>",
    },
    empty=(0, None, None, [], cuckoo_of()),
    epoch=1,
    gold_version=12,
    as_of=AS_OF,
    published_at=AS_OF,
    renewed_at=AS_OF,
    ttl_seconds=10**9,
)
BANKS = replace(
    CARDS,
    view="banks",
    keys={"bank": "bigint"},
    features={"approx_distinct_1d": "BIGINT"},
    empty=(0,),
)
TOP = [{"item": "s1", "count": 2}, {"item": "s2", "count": 1}]
VALUES = [3, Decimal("1.50"), LAST, TOP, cuckoo_of("s1", "s2")]
ROWS: Mapping[tuple[Any, ...], Sequence[Any]] = {(1, "a"): VALUES}


def publish(
    store: OnlineStore,
    view: PublishedView = CARDS,
    rows: Mapping[tuple[Any, ...], Sequence[Any]] = ROWS,
) -> None:
    """Write rows, then the view's state."""
    head = packing.head(view.epoch, view.gold_version)
    moment = micros_of(view.as_of)
    entries = [
        Entry(packing.key_text(key), packing.pack_row(head, moment, values))
        for key, values in rows.items()
    ]
    store.write(view, entries)
    assert store.advance(view, store.view(view.view))


def a_store(folder: Path) -> str:
    """Publish both views into a file; return its path."""
    path = str(folder / "online.sqlite")
    store = open_store(path, writes=True)
    publish(store)
    publish(store, BANKS, {(1,): [7]})
    store.close()
    return path


@dataclass(frozen=True)
class Server:
    """A server in this process, and who asks it."""

    http: TestClient
    service: FeatureService
    metrics: RequestMetrics

    def ask(self, document: Any, **headers: str) -> Any:
        """Return the response to a document."""
        return self.http.post("/v1/features", json=document, headers=headers)


@contextmanager
def served(
    store: OnlineStore | str,
    *,
    now: datetime = NOW,
    tokens: Tokens | None = None,
    log: Path | None = None,
    **limits: Any,
) -> Iterator[Server]:
    """A server of a store at a time, its limits as said."""
    opened = open_store(store) if isinstance(store, str) else store
    service = FeatureService(opened, Limits(**limits), Clock(now))
    metrics = RequestMetrics()
    responses = ResponseLog(log, on_dropped=metrics.dropped) if log else None
    app: Any = application(service, tokens or Tokens(), metrics, responses)
    with TestClient(app, base_url="http://127.0.0.1:8790") as http:
        yield Server(http, service, metrics)
    if responses:
        responses.close()
