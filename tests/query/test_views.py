"""The views for dashboards, on the small lake: what came, what was refused, what refreshes did."""

from __future__ import annotations

import pytest

from command_line import call
from runs import Small
from tidemill.config.pipeline_file import load
from tidemill.lake.statements import statement


@pytest.fixture(scope="module")
def asked(small: Small):
    """Asks the small lake, answers as rows."""

    def ask(sql: str) -> list[list[object]]:
        answer = call("query", sql, "--root", small.root, "--json")
        assert answer.code == 0, answer
        return answer.json["rows"]

    return ask


def test_volumes_are_what_clean_and_feature_carried(asked, small: Small) -> None:
    rows = asked(
        "SELECT query, batches, events, accepted, quarantined, duplicates, keys_changed "
        "FROM tidemill_volumes WHERE query <> 'land' ORDER BY query"
    )
    assert rows == [
        ["clean", 1, 8, 5, 2, 1, None],
        ["feature", 1, 5, None, None, None, small.summary["keys_changed"]],
    ]


def test_refused_counts_reasons(asked) -> None:
    rows = asked("SELECT reason, records, alone FROM engagement_refused ORDER BY reason")
    missing = [f"missing:{n}" for n in ("event_timestamp", "event_type", "gti", "profile_id")]
    assert rows == [["malformed", 1, 1], *([reason, 1, 0] for reason in missing)]


def test_a_tick_adds_up(asked, small: Small) -> None:
    ((version, mode, events, changed, total, steps),) = asked(
        "SELECT gold_version, mode, events, keys_changed, total_seconds, seconds "
        "FROM engagement_ticks ORDER BY gold_version"
    )
    assert (version, events) == (small.summary["gold_version"], 5)
    assert changed == small.summary["keys_changed"]
    assert mode == "recompute"
    assert total == pytest.approx(sum(steps.values()))
    assert {"append", "merge"} <= set(steps)


def test_a_pipeline_of_another_name_reads_its_own_quarantine() -> None:
    view = load("engagement").views[0]
    assert "FROM other_quarantine" in statement("refused", view, source="other")
    assert "FROM engagement_quarantine" in statement("refused", view)
