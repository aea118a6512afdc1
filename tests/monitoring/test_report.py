"""The page of `tidemill report`: its numbers, its text, and what a browser makes of it."""

from __future__ import annotations

import re
import struct
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import browser
from command_line import call
from runs import Small
from tidemill.monitoring.report import page

SIZES = {"desk": (1280, 5200), "phone": (390, 6400)}
PLOTS = 8
INK = {"light": "rgb(28, 36, 48)", "dark": "rgb(230, 233, 238)"}


@pytest.fixture(scope="module")
def report(small: Small, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A page of the small lake, and its numbers; committed today, told of as if it were 12:00."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    words = ("--root", small.root, "--output", path, "--days", 36_500, "--json")
    answer = call("report", "engagement", *words)
    assert answer.code == 0, answer
    return path, answer.json


def test_the_numbers(report: tuple[Path, dict[str, Any]]) -> None:
    path, found = report
    assert found["output"] == str(path)
    assert found["freshness"] == [
        {
            "view": "engagement",
            "as_of": "2026-11-21T11:31:00Z",
            "age_seconds": 29 * 60,
            "gold_version": 1,
        }
    ]
    totals = found["totals"]
    assert [totals[n] for n in ("events", "accepted", "quarantined", "duplicates")] == [8, 5, 2, 1]
    assert (totals["keys_changed"], totals["refreshes"], totals["backlog"]) == (3, 1, 0)
    assert {row["reason"]: row["records"] for row in found["refused"]}["malformed"] == 1
    assert found["late"]["classes"] == {
        **dict.fromkeys(("10", "60", "300", "more"), 0),
        "3600": 2,
        "21600": 1,
        "86400": 1,
        "604800": 1,
    }
    steps = {(row["query"], row["step"]) for row in found["seconds"]}
    assert {("clean", "clean"), ("feature", "append"), ("feature", "merge")} <= steps
    files = {row["table"]: row for row in found["files"]}
    assert files["engagement_features"]["files"] == 1
    assert files["engagement_features"]["small_files"] == 0
    assert files["engagement_events"]["bytes"] > 0
    assert files["engagement_events"]["log_files"] >= 2
    assert [row["query"] for row in found["batches"]] == ["feature", "clean", "land"]


def test_the_page_stands_alone(report: tuple[Path, dict[str, Any]]) -> None:
    text = report[0].read_text()
    assert not re.findall(r"<script|<link [^>]*href=\"(?!data:)|@import|url\(", text)
    known = ("http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink")
    assert set(re.findall(r"https?://[^\"' <)]+", text)) <= set(known)
    assert text.count('<svg role="img" aria-label="') == text.count("<svg ") == 2 * PLOTS
    assert text.count("<summary>as a table</summary>") == PLOTS


def test_every_text_is_escaped(report: tuple[Path, dict[str, Any]]) -> None:
    """A reason may hold a value's name, and a folder any character."""
    evil = "<script>alert('x')</script>&\"$pipeline"
    found = {**report[1], "lake": evil, "pipeline": evil}
    found["refused"] = [{"reason": evil, "records": 1, "share": 1.0}]
    text = page.rendered(found)
    assert "<script" not in text
    assert unescape(text).count(evil) >= 3


def test_a_lake_without_batches_has_a_page(report: tuple[Path, dict[str, Any]]) -> None:
    nothing = {"over_time": [], "seconds": [], "refused": [], "files": [], "batches": []}
    late = {"classes": dict.fromkeys(report[1]["late"]["classes"], 0), "most": 0}
    within = {"half_within": None, "p95_within": None}
    text = page.rendered({**report[1], **nothing, "late": {**late, **within}})
    assert "Nothing was refused." in text
    assert "<svg" not in text


@pytest.mark.parametrize(
    ("output", "found"),
    [("report.txt", "is no page"), ("absent/report.html", "there is no folder")],
)
def test_an_output_that_cannot_be_is_refused(output: str, found: str, small: Small) -> None:
    answer = call("report", "engagement", "--root", small.root, "--output", output, "--json")
    assert (answer.code, answer.error["where"]) == (2, "--output")
    assert found in str(answer.error["message"])


# -- in a browser --------------------------------------------------------------------------------


@pytest.mark.report
@pytest.mark.skipif(browser.CHROMIUM is None, reason="no chromium on this machine")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_shows_it(
    size: str, scheme: str, report: tuple[Path, dict[str, Any]], tmp_path: Path
) -> None:
    width, height = SIZES[size]
    dark = ["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]
    words = dark if scheme == "dark" else []
    framed = browser.framed(report[0].read_text(), width, height, tmp_path)
    found = browser.measured(framed, *words)
    assert found["errors"] == []
    assert found["requests"] == []
    assert found["ink"] == INK[scheme]
    assert found["width"] == width
    assert len(found["plots"]) == PLOTS
    for name, marks, wide in found["plots"]:
        assert marks, name
        assert 0 < wide <= width, name
    assert found["over"] == 0

    picture = tmp_path / "page.png"
    window = f"--window-size={width},{height}"
    browser.chromium(*words, window, f"--screenshot={picture}", framed.as_uri())
    head = picture.read_bytes()
    assert struct.unpack(">II", head[16:24]) == (width, height)
    assert len(head) > 50_000  # a page that shows nothing is a tenth of it
