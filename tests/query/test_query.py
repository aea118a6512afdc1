"""The forms of an answer: a table, CSV, JSON, a plot; and what is refused before Spark starts."""

from __future__ import annotations

import csv
import io
import re
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from unittest import mock

import pytest

from command_line import call
from runs import Small
from tidemill.errors import SetupError, UsageError
from tidemill.query import chart_axes, charts, export

SQL = "SELECT gti, view_count_1d AS views FROM engagement_features ORDER BY 1, 2"
REFUSED = [
    ((), "neither SQL nor a file"),
    (("SELECT 1", "--file", "trending"), "SQL and a file"),
    (("--file", "trendnig"), "did you mean 'trending'?"),
    (("SELECT 1", "--format", "cvs"), "did you mean 'csv'?"),
    (("SELECT 1", "--output", "x.pdf"), "the suffix '.pdf' is no picture's"),
    (("SELECT 1", "--format", "plot", "--output", "x"), "no suffix is no picture's"),
    (("SELECT 1", "--format", "table", "--output", "x.csv"), "a table goes to the terminal"),
    (("SELECT 1", "--format", "plot", "--kind", "bars"), "did you mean 'bar'?"),
    (("SELECT 1", "--x", "gti"), "are a plot's, and this is table"),
]


@pytest.mark.parametrize(("words", "found"), REFUSED, ids=[" ".join(w) for w, _ in REFUSED])
def test_refused(words: tuple[str, ...], found: str) -> None:
    answer = call("query", *words)
    assert (answer.code, answer.out) == (2, "")
    assert found in answer.err


def test_json_is_one_format() -> None:
    answer = call("query", "SELECT 1", "--format", "csv", "--json")
    assert (answer.code, answer.error["message"]) == (2, "--json is not csv")
    assert call("query", "--format", "json").error["message"] == "found neither SQL nor a file"


def test_csv_is_as_json_has_it(small: Small, tmp_path: Path) -> None:
    sql = (
        "SELECT gti, updated_at, array('a', 'b,c') AS list, CAST(1.50 AS DECIMAL(4, 2)) AS money, "
        "'said \"no\"' AS text, CAST(NULL AS INT) AS nothing, true AS yes "
        "FROM engagement_features WHERE profile_id = 'p2'"
    )
    told = call("query", sql, "--root", small.root, "--format", "csv")
    assert told.code == 0
    assert told.out == (
        "gti,updated_at,list,money,text,nothing,yes\r\n"
        'g,2026-11-21T11:31:00Z,"[""a"", ""b,c""]",1.50,"said ""no""",,true\r\n'
    )
    as_json = call("query", sql, "--root", small.root, "--format", "json").json
    assert as_json == call("query", sql, "--root", small.root, "--json").json
    assert as_json["rows"][0][3] == "1.50"
    file = tmp_path / "answer.csv"
    assert call("query", sql, "--root", small.root, "--output", file).out == f"wrote {file}\n"
    assert file.read_bytes().decode() == told.out
    assert len(list(csv.reader(io.StringIO(told.out)))) == 2


def test_a_question_of_the_folder_and_a_file(small: Small, tmp_path: Path) -> None:
    file = tmp_path / "mine.sql"
    file.write_text(f"-- mine\n{SQL};\n")
    rows = [["g", 0], ["g", 2], ["h", 0]]
    asked = call("query", "--file", file, "--root", small.root, "--json").json
    assert asked == {"columns": ["gti", "views"], "rows": rows}
    known = call("query", "--file", "top_titles", "--root", small.root, "--json")
    assert [row[0] for row in known.json["rows"]] == ["g", "h"]


@pytest.mark.parametrize("suffix", charts.SUFFIXES)
def test_a_plot_is_a_file(small: Small, suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"views{suffix}"
    answer = call(
        "query", "--file", "top_titles", "--y", "views_1d", "--output", file, *root(small)
    )
    assert (answer.code, answer.out) == (0, f"wrote {file}\n")
    found = file.read_bytes()
    assert found.startswith({".png": b"\x89PNG", ".svg": b"<svg", ".html": b"<!DOCTYPE"}[suffix])
    if suffix == ".svg":
        texts = re.findall(r"<text[^>]*>([^<]+)</text>", found.decode())
        assert {"top titles", "gti", "views 1d", "g", "h", "2"} <= {*texts}, texts
    if suffix == ".html":  # looked at without a network: every script is in it
        assert not re.findall(rb"<(?:script|link)[^>]*(?:src|href)=", found)


def root(small: Small) -> tuple[object, ...]:
    return ("--root", small.root)


def test_a_plot_needs_numbers_and_a_row(small: Small, tmp_path: Path) -> None:
    words = ("--output", tmp_path / "x.svg", *root(small))
    no_number = call("query", "SELECT gti, profile_id FROM engagement_features", *words)
    assert (no_number.code, "no numeric column beside 'gti'" in no_number.err) == (2, True)
    no_row = call("query", f"SELECT * FROM ({SQL}) WHERE false", *words)
    assert (no_row.code, "there is no row to draw" in no_row.err) == (2, True)
    assert not any(tmp_path.iterdir())


ROWS = [
    ("2026-11-21T10:00:00Z", "view", 3, Decimal("0.5")),
    ("2026-11-21T10:00:00Z", "select", 1, None),
    ("2026-11-21T11:00:00Z", "view", 2, Decimal("1")),
]
COLUMNS = ("hour", "type.of[event]", "events", "share")


def drawn(**words: object) -> dict:
    """A chart's marks, encodings by column title, and points."""
    spec = charts.chart(COLUMNS, ROWS, **words).to_dict()  # type: ignore[arg-type]
    mark = spec["mark"] if isinstance(spec["mark"], str) else spec["mark"]["type"]
    titles = {axis: one.get("title") for axis, one in spec["encoding"].items()}
    return {"mark": mark, **titles, "points": next(iter(spec["datasets"].values()))}


def test_times_make_lines_and_several_columns_colors() -> None:
    found = drawn()
    assert (found["mark"], found["x"], found["y"]) == ("line", "hour (UTC)", "value")
    assert [point["color"] for point in found["points"][:2]] == ["events", "share"]
    assert found["points"][1]["y"] == 0.5
    assert found["points"][0]["x"] == "2026-11-21T10:00:00Z"


def test_names_color_a_column_where_x_repeats() -> None:
    found = drawn(y="events")
    assert [(p["y"], p["color"]) for p in found["points"]] == [
        (3, "view"),
        (1, "select"),
        (2, "view"),
    ]
    assert found["color"] == "type.of[event]"


def test_names_on_x_make_bars_and_a_heat_map_has_two_of_them() -> None:
    assert drawn(x="type.of[event]", y="events")["mark"] == "bar"
    heat = drawn(kind="heat", color="events", labels={"hour": "hour of the day"})
    assert (heat["mark"], heat["x"], heat["color"]) == ("rect", "hour of the day", "events")
    assert heat["points"][1] == {"x": "2026-11-21T10:00:00Z", "y": "select", "color": 1}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ({"y": "event"}, "there is no column 'event'; did you mean 'events'?"),
        ({"y": "hour"}, "column 'hour' holds no numbers"),
        ({"y": ["events", "share"], "color": "hour"}, "several columns on y have colors already"),
        ({"kind": "heat", "color": "hour"}, "a heat map has no column of numbers"),
        ({"kind": "pie"}, "unknown kind 'pie'"),
    ],
)
def test_what_cannot_be_drawn(words: dict, found: str) -> None:
    with pytest.raises(UsageError, match=re.escape(found)):
        drawn(**words)


def test_without_the_extra_the_way_out_is_told() -> None:
    with (
        mock.patch.object(
            charts, "find_spec", lambda name: None if name == "altair" else find_spec(name)
        ),
        pytest.raises(SetupError, match=r"altair cannot be imported.*tidemill\[plots\]"),
    ):
        export.Form.wished("plot", False, None, None, None, (), None)


def test_kinds_are_those_of_the_help() -> None:
    told = " ".join(call("query", "--help").out.split())
    assert all(kind in told for kind in chart_axes.KINDS)
