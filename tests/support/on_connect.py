"""The tests that run a second time, on a Spark Connect session (`make test-connect`): those that
are marked `connect`.

There the session has no JVM at hand, batch functions run in another process, and what is not SQL,
DataFrames or streams does not exist: what a Databricks cluster with shared access offers too.
"""

from __future__ import annotations

import os

import pytest

IS_CONNECT = "SPARK_REMOTE" in os.environ
CANNOT = {
    "test_of_two_refreshes_at_once_one_wins": "newSession does not exist on Connect",
    "test_ticks_leave_no_view_in_their_session": "there a query is read later",
    "test_kept_rows_copy_no_session": "the session is the server's",
}
CANNOT_WITH = {
    "children": "starts processes of its own, and one machine has one port for a Connect server",
    "apart": "newSession does not exist on Connect",
}


def skip(items: list[pytest.Item]) -> None:
    """On Connect, skip those tests of the group that cannot run there, each with its reason."""
    for item in items:
        if not IS_CONNECT or not item.get_closest_marker("connect"):
            continue
        if why := _why_not(item):
            item.add_marker(pytest.mark.skip(reason=why))


def _why_not(item: pytest.Item) -> str | None:
    name = getattr(item, "originalname", item.name)
    fixtures = getattr(item, "fixturenames", ())
    reasons = (why for fixture, why in CANNOT_WITH.items() if fixture in fixtures)
    return CANNOT.get(name) or next(reasons, None)
