"""What the commands print for people: data is text, whatever it holds; only we style and obey.

Every command is called once on a lake of hostile keys, payloads, names and paths.
"""

from __future__ import annotations

import io
import json
import logging
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from pyspark.sql import SparkSession

import hostile as values
from command_line import call
from hostile import BIDI, FILE, IMAGE, OBEYED, SCRIPT, STYLED
from lakes import NOW
from runs import Small, reading
from tidemill.cli.output import top_screen
from tidemill.cli.output.display import Show
from tidemill.cli.output.terminal import VisibleFormatter
from tidemill.lake.visible_text import visible, visible_json

SHOWN = visible(BIDI)
CONTROLS = "a\x1b[31m\r\x9b\x00\u2028\ud800z"
COMMANDS: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "run": (("run", "engagement", "--source", "files", "--input", "INPUT", "--once"), 0, ("[b]",)),
    "refresh": (("refresh", "engagement", "--as-of", "2026-11-21T11:40"), 0, ("engagement",)),
    "reconcile": (("reconcile", "engagement"), 0, ("different 0",)),
    "plan": (("plan", "engagement"), 0, ("engagement",)),
    "maintain": (("maintain", "engagement", "--dry-run"), 0, ("steps to do",)),
    "explain": (("explain", "engagement", SCRIPT, IMAGE), 0, (SCRIPT, IMAGE, visible(FILE))),
    "explain styled": (("explain", "engagement", STYLED, BIDI), 0, (STYLED, SHOWN)),
    "explain at": (
        ("explain", "engagement", BIDI, SCRIPT, "--at", "2026-11-21T11:50"),
        0,
        (SHOWN, SCRIPT),
    ),
    "describe": (("describe", "engagement"), 0, ("engagement_features",)),
    "query": (
        ("query", "SELECT * FROM engagement_features"),
        0,
        (SCRIPT, IMAGE, STYLED, SHOWN),
    ),
    "query columns": (("query", f"SELECT 1 AS `{STYLED}\x1b`"), 0, (f"{STYLED}\\x1b",)),
    "query csv": (
        ("query", "SELECT DISTINCT gti FROM engagement_features", "--format", "csv"),
        0,
        (STYLED,),
    ),
    "list": (("quarantine", "list", "engagement"), 0, ("1 refused", "malformed")),
    "show": (("quarantine", "show", "engagement", "ID"), 0, (visible(values.PAYLOAD),)),
    "show none": (("quarantine", "show", "engagement", STYLED + "\x1b"), 2, (STYLED + "\\x1b",)),
    "top": (("top", "--once"), 0, ("[b]lake <i>", "malformed 1")),
    "report": (("report", "engagement", "--output", "PAGE"), 0, ("[red]page.html",)),
    "doctor": (("doctor",), 0, ("[b]lake <i>",)),
    "quality": (("quality", "engagement"), 1, (STYLED, SHOWN, SCRIPT, "failed")),
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(scope="module")
def lake(hostile: Small, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Small:
    """A copy whose gold somebody has changed, so that `quality` names its keys."""
    return replace(hostile, root=hostile.copy(tmp_path_factory.mktemp("lake") / "[b]lake <i>"))


@pytest.mark.parametrize("name", COMMANDS)
def test_data_is_text(name: str, lake: Small, spark: SparkSession, tmp_path: Path) -> None:
    words, code, shown = COMMANDS[name]
    if name == "show":
        reading(spark, lake.root)
        refused = spark.table("engagement_quarantine").first()
        assert refused is not None
        words = tuple(refused["record_id"] if word == "ID" else word for word in words)
    if name == "quality":
        reading(spark, lake.root)
        spark.sql("UPDATE engagement_features SET view_count_1h = 9, select_count_1h = 9")
    named = {"INPUT": str(lake.input), "PAGE": str(tmp_path / "[red]page.html")}
    answer = call(*(named.get(word, word) for word in words), "--root", lake.root)
    assert answer.code == code, answer
    told = answer.out + answer.err
    for text in shown:
        assert text in told, told
    obeyed = OBEYED - ({"\r"} if name == "query csv" else set())
    written = told.replace(BIDI, "") if name == "query csv" else told
    assert not obeyed & {*written}, told


def test_errors_show_what_was_typed(lake: Small, tmp_path: Path) -> None:
    for words in (
        ("explain", "engagement", STYLED),
        ("query", f"SELECT `{STYLED}\x1b[31m` FROM engagement_features"),
        ("run", "engagement", "--input", f"{tmp_path}/[b]absent\x1b[2J", "--once"),
        ("run", f"[b]absent\x1b[2J{BIDI}"),
        ("query", "SELECT 1", "--format", f"{STYLED}\x1b"),
        ("quarantine", "replay", "engagement", "--ids", f"{STYLED}\x1b"),
    ):
        for verbose in ((), ("--verbose",)):
            answer = call(*words, "--root", lake.root, *verbose)
            assert answer.code in {2, 3}, answer
            assert ("[b]absent" if "run" in words else "[/b]") in answer.err or words[
                0
            ] == "explain"
            assert not OBEYED & {*answer.err}, answer.err


def test_json_is_the_same_json(lake: Small) -> None:
    """And no character of it moves a terminal."""
    sql = f"SELECT DISTINCT profile_id, '{CONTROLS[:-2]}' AS c FROM engagement_features"
    answer = call("query", sql, "--root", lake.root, "--json")
    assert not OBEYED & {*answer.out}
    rows = {tuple(row) for row in answer.json["rows"]}
    assert rows == {(key, CONTROLS[:-2]) for key in (SCRIPT, IMAGE, STYLED, BIDI)}
    assert json.loads(visible_json(json.dumps([CONTROLS, BIDI], ensure_ascii=False))) == [
        CONTROLS,
        BIDI,
    ]


def test_csv_on_a_terminal_is_shown_and_in_a_file_exact(lake: Small) -> None:
    sql = "SELECT DISTINCT gti FROM engagement_features WHERE gti LIKE 'pay%'"
    words = ("query", sql, "--format", "csv", "--root", lake.root)
    assert call(*words).out == f"gti\r\n{BIDI}\r\n"
    with mock.patch("command_line.io.StringIO", Terminal):
        assert call(*words).out == f"gti\n{SHOWN}\n"


def printed(show: str, *words: object) -> list[str]:
    out = io.StringIO()
    with redirect_stdout(out):
        getattr(Show(quiet=False), show)(*words)
    return out.getvalue().splitlines()


def test_a_table_is_as_wide_as_what_it_shows() -> None:
    rows = [[STYLED, 1], [CONTROLS, 22], ["日本", 333]]
    lines = printed("table", ["key", "n"], rows)
    shown = [STYLED, visible(CONTROLS), "日本  "]  # two columns each
    width = max(map(len, shown))
    assert lines == [
        f"{'key':<{width}}    n",
        *(f"{text:<{width}}  {n:>3}" for text, (_, n) in zip(shown[:2], rows, strict=False)),
        f"日本{' ' * (width - 4)}  333",
    ]


def test_what_is_styled_is_ours() -> None:
    assert printed("say", ("[b]x", "bold"), " [/b]:smile:\x1b[0m\n") == [
        r"[b]x [/b]:smile:\x1b[0m\n"
    ]
    series = {"a": [1, 2]}

    assert printed("plot", f"{STYLED}\r", series, [NOW, NOW])[0].startswith(f"{STYLED}\\r  2026")


def test_a_frame_of_top_shows_reasons_and_folders_as_text() -> None:
    query = {
        "query": STYLED,
        "view": CONTROLS,
        "batch": 1,
        "age_seconds": 1,
        "seconds": {"[red]step": 1.0},
        "events": 1,
        "events_per_minute": 1,
        "backlog": 0,
        "as_of": None,
        "freshness_seconds": 0,
        "refused": {f"{STYLED}\x1b": 2},
        "newest_events": [1],
    }
    alarm = {
        "view": None,
        "fault": "missing",
        "field": f"{STYLED}\x9b",
        "expected": "string",
        "since": "then",
        "records": 2,
    }
    frame = {
        "lake": f"/x/{STYLED}\x1b",
        "at": "now",
        "writer": f"{STYLED}\r",
        "pipelines": [{"pipeline": f"{STYLED}\x9b", "alarms": [alarm], "queries": [query]}],
    }
    out = io.StringIO()
    with redirect_stdout(out), mock.patch.dict("os.environ", {"COLUMNS": "220"}):
        top_screen.show_once(frame)
    told = out.getvalue()
    assert told.count(STYLED) == 6
    assert "[red]step 1.0" in told
    assert visible(CONTROLS) in told
    assert not OBEYED & {*told}


def test_a_log_line_is_text() -> None:
    record = logging.makeLogRecord({"msg": "read %s", "args": (CONTROLS,)})
    assert VisibleFormatter().format(record) == f"read {visible(CONTROLS)}"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2J", r"a\x1b[2J"),
        ("a\r\nb\tc", r"a\r\nb\tc"),
        ("\x7f\x9b", r"\x7f\x9b"),
        ("\u202e\u2066\ufeff\ud800", r"\u202e\u2066\ufeff\ud800"),
        ("ä 日 👩‍💻 \\n", "ä 日 👩‍💻 \\n"),
    ],
)
def test_controls_are_shown(text: str, shown: str) -> None:
    assert visible(text) == shown
