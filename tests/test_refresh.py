"""Refresh: gold at every as_of, and what its commits say."""

from __future__ import annotations

import time
import oracle
from lakes import Event, Lakes, at


def test_counts_at_the_edges_of_a_window(lakes: Lakes) -> None:
    # 09:59 |10:00 ............ 10:59| 11:00      as_of = 11:00, 1 h = [10:00, 11:00)
    events: list[Event] = [
        ("a", "p", "g", "view", at("09:59:59.999")),
        ("b", "p", "g", "view", at("10:00:00")),
        ("c", "p", "g", "view", at("10:59:59.999")),
    ]
    lake = lakes.new()
    t=time.time()
    lake.feed(events)
    print("feed1",time.time()-t)
    for i in range(5):
        t=time.time()
        lake.feed(events)
        print("feed",time.time()-t)
    for i in range(5):
        t=time.time()
        from lakes import payload
        lake.step([payload(e) for e in events])
        print("step",time.time()-t)
    assert lake.gold() == oracle.features(events, at("11:00"))
