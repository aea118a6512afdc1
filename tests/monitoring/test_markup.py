"""Hostile values in pages: the report, plots, Data Docs and what notebooks show, in a browser.

A page may show a value in any way, but runs no script that is not its own, and breaks no policy.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import browser
from command_line import call
from hostile import BIDI, EVIL, FILE, IMAGE, OBEYED, SCRIPT, STYLED
from runs import Small, reading
from tidemill.config.pipeline_file import SHIPPED
from tidemill.monitoring.report import page
from tidemill.quality import validation_run
from tidemill.quality.expectations import gx
from tidemill.quality.suites import Asset
from tidemill.query import charts

KEYS = (SCRIPT, IMAGE, STYLED, BIDI, "a\x1b[31m\r\x9b\x00")
NUMBERS = [[key, number] for number, key in enumerate(KEYS, 1)]


@pytest.fixture(scope="module")
def pages(hostile: Small, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of all pages that can hold a value of a lake, of a lake with hostile values."""
    folder = tmp_path_factory.mktemp("pages")
    write_plots(folder, hostile)
    write_report(folder, hostile)
    write_notebook(folder)
    write_docs(folder, spark)
    write_lake_docs(folder, hostile.copy(folder / "lake"), spark)
    shutil.rmtree(folder / "lake")
    return folder


def write_plots(folder: Path, hostile: Small) -> None:
    sql = "SELECT profile_id, sum(view_count_1d) AS n FROM engagement_features GROUP BY profile_id"
    question = folder / f"{FILE[:-6]}.sql"  # its name is the plot's title
    question.write_text(sql)
    for suffix in ("html", "svg"):
        words = ("--file", question, "--output", folder / f"plot.{suffix}", "--root", hostile.root)
        answer = call("query", *words)
        assert answer.code == 0, answer
    heat = [[one, other, 1] for one in KEYS for other in KEYS]
    chart = charts.chart([SCRIPT, "b", IMAGE], heat, kind="heat", title=SCRIPT)
    charts.save(chart, folder / "heat.html")
    chart = charts.chart(["a", *KEYS], [[1, *range(len(KEYS))]], kind="bar", title=IMAGE)
    charts.save(chart, folder / "several.html")


def write_report(folder: Path, hostile: Small) -> None:
    words = ("--root", hostile.root, "--output", folder / "report.html", "--days", 36_500)
    answer = call("report", "engagement", *words, "--json")
    assert answer.code == 0, answer
    found: dict[str, Any] = answer.json
    reasons = [{"reason": key, "records": 1, "share": 0.1} for key in KEYS]
    named = {"pipeline": SCRIPT, "lake": IMAGE + "\x1b", "refused": reasons}
    files = [{**found["files"][0], "table": key} for key in KEYS]
    fresh = [{**found["freshness"][0], "view": key} for key in KEYS]
    named |= {"files": files, "freshness": fresh}
    (folder / "named.html").write_text(page.rendered({**found, **named}))


def write_notebook(folder: Path) -> None:
    """What a notebook puts into its page for a cell whose last line is a chart."""
    shown = charts.show(charts.chart(["key", "n"], NUMBERS, title=SCRIPT), "x")
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "image/png"}
    (folder / "notebook.html").write_text(f"<body>{bundle['image/svg+xml']}</body>")


def write_docs(folder: Path, spark: SparkSession) -> None:
    great = gx().expectations
    frame = spark.createDataFrame([*NUMBERS, *NUMBERS[:1]], "k STRING, n INT")
    known = [{"column": "k", "meta": {"reason": SCRIPT}}]
    suite = [
        great.ExpectColumnValuesToBeInSet(value_set=[IMAGE, SCRIPT], **known[0]),
        great.ExpectColumnValuesToMatchRegex(regex=f"^(?!<){SCRIPT}", **known[0]),
        great.ExpectColumnValuesToBeUnique(**known[0]),
        great.ExpectColumnValuesToBeBetween(column="n", max_value=0, meta={"reason": IMAGE}),
    ]
    found = validation_run.checked([Asset("keys", frame, suite, ("k",))], "", folder / "docs")
    assert [check.ok for check in found] == [False] * 4


def write_lake_docs(folder: Path, root: Path, spark: SparkSession) -> None:
    reading(spark, root)
    spark.sql("UPDATE engagement_features SET view_count_1h = 9")
    spark.sql("UPDATE engagement_events SET profile_id = '', event_type = profile_id")
    answer = call("quality", "engagement", "--root", root, "--docs", folder / "docs_of_lake")
    assert answer.code == 1, answer


def html_of(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.html"))


def test_values_are_text(pages: Path) -> None:
    """Without a browser: nothing of theirs is a tag, and no character is one that is obeyed."""
    found = {path.relative_to(pages).parts[0] for path in html_of(pages)}
    assert found >= {"plot.html", "heat.html", "report.html", "named.html", "notebook.html"}
    assert found >= {"docs", "docs_of_lake"}
    for path in [*html_of(pages), pages / "plot.svg"]:
        text = path.read_text()
        assert not re.search(r"<script>document|<img src=x", text), path
        assert not OBEYED - {"\t"} & {*text}, path
    for name in ("plot.html", "heat.html", "named.html", "plot.svg"):
        shown = unescape((pages / name).read_text())
        assert SCRIPT in shown, name
        assert r"pay\u202egnp.exe\u2066" in shown, name


def test_our_own_pages_have_a_policy(pages: Path) -> None:
    for path in pages.glob("*.html"):
        if path.stem == "notebook":
            continue
        text = path.read_text()
        policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
        assert len(policy) == 1, path
        assert policy[0].startswith("default-src 'none'; style-src 'sha256-")
        assert "unsafe" not in policy[0]
        assert not re.findall(r"<script|https?://(?!www\.w3\.org/)| style=| on\w+=", text_of(text))


def text_of(page: str) -> str:
    """The page's tags alone: what stands between them, and in quotes, is text."""
    return " ".join(re.sub(r'"[^"]*"', '""', tag) for tag in re.findall(r"<[^>]*>", page))


@pytest.mark.parametrize("name", ["<b>", "a-b", "x\x1b[31m", SCRIPT])
def test_a_hostile_name_is_refused(name: str, tmp_path: Path) -> None:
    """So that no page meets it: pipelines and views are called by identifiers."""
    file = tmp_path / "mine.yaml"
    text = (SHIPPED / "engagement.yaml").read_text()
    for field in ("pipeline: ", "  - name: "):
        changed = text.replace(f"{field}engagement", field + json.dumps(name))
        assert changed != text
        file.write_text(changed)
        answer = call("sql", "features", "--view", "engagement", "--pipeline", file)
        assert answer.code == 2, answer
        assert "is not an identifier" in answer.err
        assert not OBEYED & {*answer.err}


# -- in a browser --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    yield tmp_path_factory.mktemp("browser")


@pytest.mark.report
@pytest.mark.skipif(browser.CHROMIUM is None, reason="no chromium on this machine")
def test_no_value_runs_in_a_browser(pages: Path, profile: Path) -> None:
    """Neither their scripts nor theirs in our pages, and our policy refuses nothing of ours."""
    for path in html_of(pages):
        if EVIL not in path.read_text():
            continue
        dom, console = browser.complaints(path.as_uri(), f"--user-data-dir={profile}")
        assert "data-evil" not in dom.split(">", 2)[1], path
        assert EVIL not in dom or not re.search(r"<(script|img)[^>]*>?document", dom), path
        if path.parent == pages:
            assert "<script" not in dom, path
            assert console == [], path


@pytest.mark.report
@pytest.mark.skipif(browser.CHROMIUM is None, reason="no chromium on this machine")
def test_the_browser_would_run_it(tmp_path: Path, profile: Path) -> None:
    """The test above can fail: a page without care runs the script, with a policy it does not."""
    for policy, runs in (("", True), ("default-src 'none'", False)):
        raw = tmp_path / f"raw{runs}.html"
        meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">' if policy else ""
        body = f"{SCRIPT}{IMAGE}".replace("alert", "String")  # a dialog would wait for an answer
        raw.write_text(f"<!doctype html><html><head>{meta}</head><body>{body}</body></html>")
        dom, console = browser.complaints(raw.as_uri(), f"--user-data-dir={profile}")
        assert ('data-evil="1"' in dom) is runs
        assert bool([line for line in console if "Content Security Policy" in line]) is not runs
