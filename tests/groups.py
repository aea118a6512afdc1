"""Which tests are of the main job, and which of what stands around it.

`make test` runs the main job: records to features, exact and safe to kill. Around it are other
aggregates and the pipelines that use them, the other engine, upkeep and its hour buckets, changes
of a living view, catalogs, quality, the bundle, notebooks and reports: `make test-around`. CI runs
both.
"""

from __future__ import annotations

import pytest

AROUND = frozenset(
    {
        "test_aggregates",
        "test_arithmetic",
        "test_bundle",
        "test_catalog",
        "test_contains",
        "test_dbx",
        "test_definitions",
        "test_describe",
        "test_evolution",
        "test_expectations",
        "test_explain",
        "test_exporter",
        "test_filters",
        "test_gate",
        "test_hours",
        "test_init",
        "test_keeper",
        "test_maintenance",
        "test_metrics",
        "test_notebooks",
        "test_own_aggregate",
        "test_parts",
        "test_quality",
        "test_quarantine",
        "test_readers",
        "test_report",
        "test_sketches",
        "test_stateful",
    }
)


def mark(items: list[pytest.Item]) -> None:
    """Mark the tests around the main job."""
    for item in items:
        if item.path.stem in AROUND:
            item.add_marker("around")
