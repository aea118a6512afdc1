"""The pages of `tidemill ui`: what a person reads on them is what SQL says of the lake."""

from __future__ import annotations

import random
import re
import shlex
import shutil
import time
from collections.abc import Sequence
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import duckdb
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from starlette.testclient import TestClient

import browser
import sales
import tidemill
from children import Children
from hostile import BIDI, EVIL, IMAGE, OBEYED, SCRIPT, STYLED
from lakes import NOW, at
from runs import Small
from sales import CASES, Sales
from tidemill.api.page_reads import site
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock, Place
from tidemill.errors import SourceError, UsageError
from tidemill.monitoring.last_error import kept
from tidemill.monitoring.pages import visitors
from tidemill.monitoring.pages.key_page import explaining
from tidemill.monitoring.pages.lake_reads import Shown
from tidemill.monitoring.pages.started_commands import Commands
from tidemill.online.server.tokens import Tokens

PATHS = ("/", "/views/engagement", "/batches", "/quality", "/quarantine", "/files", "/online")
TOKEN = "a-token-of-this-test"


def client_of(root: Path, tokens: tuple[str, ...] = (), host: str = "127.0.0.1") -> TestClient:
    return client_of_all((root,), tokens, host)


def client_of_all(
    roots: Sequence[Path], tokens: tuple[str, ...] = (), host: str = "127.0.0.1"
) -> TestClient:
    lakes = [tidemill.open_lake(root, pipeline="engagement") for root in roots]
    known = Tokens.from_environment("T", "127.0.0.1", {"T": " ".join(tokens)})
    made = site([lake._access for lake in lakes], known)
    return TestClient(made, base_url=f"http://{host}", follow_redirects=False)


@pytest.fixture(scope="module")
def client(small: Small) -> TestClient:
    return client_of(small.root)


def rows_of(page: str, heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    (section,) = (s for s in re.split("<section[^>]*>", page) if f"<h2>{heading}</h2>" in s)
    body = section[section.index("<tbody>") : section.index("</tbody>")]
    cells = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in body.split("<tr>")[1:]]
    return [[unescape(re.sub("<[^>]+>", "", cell)) for cell in row] for row in cells]


def guard_of(page: str) -> str:
    return re.findall(r'name="guard" value="([^"]+)"', page)[0]


def sql(root: Path, text: str) -> list[tuple]:
    found = duckdb.connect()
    for name in ("features", "quarantine", "events"):
        found.register(name, DeltaTable(str(root / f"engagement_{name}")).to_pyarrow_dataset())
    return found.sql(text).fetchall()


def test_each_page_is_there_and_asks_for_no_session(
    small: Small, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def started(*_: object) -> None:
        raise AssertionError("Spark was asked")

    monkeypatch.setattr("tidemill.api.holding.Access.session", started)
    for path in PATHS:
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert "<script" not in answer.text
        assert "StoreAddress" not in answer.text


def test_the_numbers_are_those_of_sql(small: Small, client: TestClient) -> None:
    first = client.get("/").text
    ((refused,),) = sql(small.root, "SELECT count(*) FROM quarantine")
    assert f">{refused}</a></b><span>refused records are open" in first
    queries = {row[0]: row for row in rows_of(first, "Queries of engagement")}
    assert queries["feature"][6] == "2026-11-21T11:31:00Z"

    view = client.get("/views/engagement").text
    ((keys,),) = sql(small.root, "SELECT count(*) FROM features")
    assert f"<b>{keys}</b><span>keys in gold" in view
    assert len(rows_of(view, "Features")) == 9
    changed = rows_of(view, "Keys that changed last")
    assert {row[1] for row in changed} == {"2026-11-21T11:31:00Z"}
    lies = rows_of(view, "Values of view_count_1d")
    assert sum(int(row[1]) for row in lies) == keys
    expected = sql(small.root, "SELECT profile_id || ' ' || gti FROM features ORDER BY 1")
    assert sorted(row[0] for row in changed) == [key for (key,) in expected]

    reasons = {row[0]: int(row[1]) for row in rows_of(client.get("/quarantine").text, "Reasons")}
    counted = "SELECT reason, count(*) FROM (SELECT unnest(reasons) AS reason FROM quarantine)"
    assert reasons == dict(sql(small.root, f"{counted} GROUP BY 1"))


def test_a_key_is_explained(small: Small, client: TestClient) -> None:
    page = client.get("/views/engagement/key?profile_id=p1&gti=g").text
    found = {row[0]: int(row[1]) for row in rows_of(page, "Values now")}
    names = list(found)
    text = f"SELECT {', '.join(names)} FROM features WHERE profile_id = 'p1' AND gti = 'g'"
    assert [tuple(found.values())] == sql(small.root, text)
    assert [row[1] for row in rows_of(page, "Events")] == ["a2", "a1"]  # newest first
    # a mark in the windows of 12 hours and of a day for both minutes, of one hour for the later
    marks = re.findall(r"<title>([^<]+), batch 0</title>", page)
    both = 2  # a picture for a wide page and one for a narrow one
    assert sorted(marks) == sorted(
        both * (2 * ["2026-11-21T10:00:00Z"] + 3 * ["2026-11-21T11:30:00Z"])
    )
    values = rows_of(page, "Values over time")
    assert [row[1] for row in values] == ["2026-11-21T11:31:00Z"]


def test_a_key_of_every_aggregate_and_of_another_type(spark: SparkSession, tmp_path: Path) -> None:
    view = sales.declare([feature.over("3h") for feature, _, _ in CASES]).views[0].words()
    words = {"pipeline": "sales", "source": {"kind": "files"}}
    typed = PipelineDefinition.model_validate(
        {**words, "views": [{**view, "keys": ["points", "ok"]}]}
    )
    lake = Sales.new(spark, tmp_path / "lake", typed)
    lake.feed(drawn := sales.draw(random.Random(3), at("09:00"), 60, 40))
    opened = tidemill.open_lake(tmp_path / "lake", pipeline=typed)
    client = TestClient(site([opened._access], Tokens()), base_url="http://127.0.0.1")
    one, names = drawn[0], [column.name for column in lake.view.shown]
    for points, known in ((one.points, "known"), (-999, "not in gold")):
        answer = client.get(f"/views/sales/key?points={points}&ok={one.ok}")
        assert answer.status_code == 200 and f"<b>{known}</b>" in answer.text
        assert [row[0] for row in rows_of(answer.text, "Values now")] == names
    refused = client.get("/views/sales/key?points=many&ok=true").text
    assert "is no BIGINT" in refused


def test_events_that_only_spark_can_tell(
    client: TestClient, small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise UsageError("DuckDB does not answer this as Spark does: sha1")

    monkeypatch.setattr("tidemill.query.explain._event_rows", refused)
    page = client.get("/views/engagement/key?profile_id=p1&gti=g").text
    assert "<b>known</b>" in page and rows_of(page, "Values now")
    command = f"tidemill explain --root {small.root} engagement p1 g"
    assert f"as Spark does: sha1: <code>{command}</code>" in page


def test_a_key_is_explained_by_a_command_that_can_be_copied() -> None:
    """Of a pipeline in a file, with keys that look like options or like the shell's own words."""
    reads: Any = None
    commands = Commands(["--root", "my lake"])
    shown = Shown(reads, "sales", "my sales.yaml", [], "", commands, Clock(), "/")
    told = explaining(shown, {"view": "sales", "key": {"points": -5, "name": "a 'b' $c"}})
    words = ["--root", "my lake", "--pipeline", "my sales.yaml", "sales"]
    assert shlex.split(told) == ["tidemill", "explain", *words, "--", "-5", "a 'b' $c"]


def test_a_key_that_gold_has_not_and_what_is_no_key(client: TestClient) -> None:
    page = client.get("/views/engagement/key?profile_id=nobody&gti=g").text
    assert "not in gold" in page and "these are the empty values" in page
    refused = client.get("/views/engagement/key?profile_id=p1")
    assert refused.status_code == 404 and "has other keys" in refused.text
    assert client.get("/views/nope").status_code == 404
    assert client.get("/quarantine/record?id=nope").status_code == 404
    assert client.get("/commands/7").status_code == 404


def test_hostile_values_are_text(hostile: Small) -> None:
    client = client_of(hostile.root)
    keys = [{"profile_id": SCRIPT, "gti": IMAGE}, {"profile_id": BIDI, "gti": SCRIPT}]
    paths = [*PATHS, *(f"/views/engagement/key?{urlencode(key)}" for key in keys)]
    links = re.findall(r'href="(/quarantine/record[^"]+)"', client.get("/quarantine").text)
    for path in [*paths, *map(unescape, links)]:
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert not re.search(r"<script|<img", answer.text), path
        assert not OBEYED - {"\t"} & {*answer.text}, path
    shown = client.get("/views/engagement").text
    for _, link in re.findall(r'<td><a (href)="(/views/engagement/key[^"]+)"', shown):
        page = client.get(unescape(link)).text
        assert "<b>known</b>" in page, link  # the link leads to the key it names
    assert STYLED in unescape(shown)


def test_the_last_runs_error_and_its_cure(small: Small, tmp_path: Path) -> None:
    root = small.copy(tmp_path / "lake")
    with pytest.raises(SourceError), kept(Place(root), "engagement", Clock(NOW)):
        raise SourceError(f"no broker {SCRIPT}", where="source", expected="one that answers")
    first = client_of(root).get("/").text
    (row,) = rows_of(first, "The last run failed")
    assert row == ["2026-11-21T12:00:00Z", "source", f"no broker {SCRIPT}", "one that answers"]
    assert "<script" not in first


def test_alerts_that_go_on_lead_to_their_keys(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"profile_id": "p1", "gti": SCRIPT}
    found = {"alert": "BUSY", "view": "engagement", "key": key, "fired_at": "2026-11-21T10:00:00Z"}
    found["features"] = {"view_count_1h": 7}
    monkeypatch.setattr("tidemill.api.reads.alerts", lambda *_, all_of_them: [found])
    page = client.get("/").text
    ((alert, who, since, read),) = rows_of(page, "Alerts")
    assert (alert, since, read) == ("BUSY", "2026-11-21T10:00:00Z", '{"view_count_1h": 7}')
    assert who.startswith("p1 ") and "<script" not in page
    (link,) = {href for href in re.findall(r'href="([^"]+)"', page) if "/key?" in href}
    assert client.get(unescape(link)).status_code == 200


def test_several_pipelines_stand_on_one_page(small: Small, tmp_path: Path) -> None:
    """Three lakes of the same pipeline: one as it is, one whose run failed, one whose gold is
    gone."""
    failed = small.copy(tmp_path / "failed")
    with pytest.raises(SourceError), kept(Place(failed), "engagement", Clock(NOW)):
        raise SourceError("no broker", where="source", expected="one that answers")
    gone = small.copy(tmp_path / "gone")
    client = client_of_all((small.root, failed, gone), (TOKEN,))
    shutil.rmtree(gone / "engagement_features")
    assert client.get("/").headers["location"] == "/login"
    second = "/pipelines/engagement-2"
    assert client.get(f"{second}/files").headers["location"] == f"{second}/login"
    client.post(f"{second}/login", data={"token": TOKEN})

    ((refused,),) = sql(small.root, "SELECT count(*) FROM quarantine")
    rows = rows_of(client.get("/").text, "Pipelines")
    assert [row[0] for row in rows] == ["engagement"] * 3
    assert [row[4:] for row in rows[:2]] == [
        [str(refused), "ended well", ""],
        [str(refused), "no broker", "one that answers"],
    ]
    assert rows[2][5].startswith("cannot be read: ")

    for path in PATHS:
        page = client.get(f"{second}{path}").text
        links = {unescape(link) for link in re.findall(r'(?:href|action)="([^"]+)"', page)}
        assert {"/", f"{second}/files"} < links, path
        ours = [link for link in links if link not in ("/", "data:,")]
        assert all(link.startswith(f"{second}/") for link in ours), path
        for link in {*ours} & {unescape(href) for href in re.findall(r'href="([^"]+)"', page)}:
            assert client.get(link).status_code == 200, link
    assert client.get("/pipelines/nope/").status_code == 404
    guard = guard_of(client.get(f"{second}/views/engagement").text)
    answer = client.post(f"{second}/reconcile", data={"guard": guard})
    assert answer.headers["location"] == f"{second}/commands/1"


def test_who_has_no_token_sees_nothing(small: Small) -> None:
    client = client_of(small.root, (TOKEN,))
    for path in (*PATHS, "/nope"):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["location"]) == (303, "/login")
    assert client.post("/reconcile").headers["location"] == "/login"
    assert client.get("/", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    assert client.post("/login", data={"token": "another-token-here"}).status_code == 401
    answer = client.post("/login", data={"token": TOKEN})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and TOKEN not in cookie
    assert client.get("/").status_code == 200


def test_without_a_token_only_this_machines_names_are_answered(small: Small) -> None:
    answer = client_of(small.root, host="evil.example").get("/")
    assert answer.status_code == 403 and "engagement" not in answer.text


def test_a_form_of_another_page_does_nothing(small: Small, client: TestClient) -> None:
    for path, fields in (("/reconcile", {}), ("/replay", {"record_id": "x"})):
        for guard in ("", "0" * 64):
            answer = client.post(path, data={**fields, "guard": guard})
            assert (answer.status_code, "Nothing was done" in answer.text) == (403, True)
    assert client.get("/reconcile").status_code == 405


def test_reconcile_is_a_command_in_a_process_of_its_own(small: Small, client: TestClient) -> None:
    guard = guard_of(client.get("/views/engagement").text)
    answer = client.post("/reconcile", data={"guard": guard})
    assert answer.status_code == 303
    waiting = client.get(answer.headers["location"]).text
    assert 'http-equiv="refresh"' in waiting
    busy = client.post("/reconcile", data={"guard": guard})
    assert "a command is under way" in busy.text
    deadline = time.monotonic() + 60
    while 'http-equiv="refresh"' in (page := client.get(answer.headers["location"]).text):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    found = dict(rows_of(page, "Its answer"))
    assert (found["different"], found["keys"]) == ("0", "3")
    assert "<b>exit 0</b>" in page


def test_a_replay_names_a_record_that_is_there(
    small: Small, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        "tidemill.monitoring.pages.started_commands.Commands.start",
        lambda _, *words: started.append(words) or 1,
    )
    (link, *_) = re.findall(r'href="(/quarantine/record[^"]+)"', client.get("/quarantine").text)
    page = client.get(unescape(link)).text
    (record,) = set(re.findall(r'name="record_id" value="([^"]+)"', page))
    fields = {"guard": guard_of(page), "record_id": record, "set": " gti=g "}
    assert client.post("/replay", data=fields).headers["location"] == "/commands/1"
    assert client.post("/replay", data={**fields, "record_id": "--root=/"}).status_code == 404
    assert started == [("quarantine", "replay", "engagement", f"--ids={record}", "--set=gti=g")]


def test_the_first_visitors_are_forgotten() -> None:
    known = visitors.Visitors(Tokens.from_environment("T", "::1", {"T": TOKEN}))
    first = known.welcome(TOKEN)
    assert first and known.admits(first, b"")
    for _ in range(1_000):
        known.welcome(TOKEN)
    assert not known.admits(first, b"")
    assert not known.guards("a", known.guard("b"))


ACTIVE = """(() => {
  const at = document.activeElement;
  if (at === document.body) return null;
  const seen = getComputedStyle(at), box = at.getBoundingClientRect();
  return [at.tagName, at.textContent || at.name, seen.outlineStyle !== "none", box.width > 0];
})()"""
USABLE = "a[href], button, input:not([type=hidden]), summary, [tabindex='0']"


@pytest.mark.report
@pytest.mark.skipif(browser.CHROMIUM is None, reason="no chromium on this machine")
def test_the_keyboard_and_a_phone_are_enough(
    small: Small, children: Children, tmp_path: Path
) -> None:
    """Tab comes to everything that can be used, in its order, and one sees where it is; Enter
    follows a link and opens a table. On a narrow screen nothing stands outside."""
    child = children.tidemill("ui", "engagement", "--root", small.root, "--port", 0)
    try:
        child.until(lambda: "Ctrl-C" in child.out.read_text())
        (url,) = re.findall(r"http://\S+?(?=;)", child.out.read_text())
        with browser.tab(tmp_path / "profile") as tab:
            for path in (*PATHS, "/views/engagement/key?profile_id=p1&gti=g"):
                tab.open(f"{url}{path}", width=390)
                assert tab.value("document.documentElement.scrollWidth") == 390, path
            tab.open(f"{url}/views/engagement")
            there = f"[...document.querySelectorAll(`{USABLE}`)].filter(e => e.checkVisibility())"
            expected = tab.value(f"{there}.map(e => [e.tagName, e.textContent || e.name])")
            reached = []
            while True:
                tab.press("Tab", 9)
                if (at := tab.value(ACTIVE)) is None or len(reached) > len(expected):
                    break
                assert at[2:] == [True, True], at
                reached.append(at[:2])
            assert reached == expected
            summaries = [n for n, (tag, _) in enumerate(reached) if tag == "SUMMARY"]
            tab.value("document.querySelector('summary').focus()")
            opened = "document.querySelector('details').open"
            before = tab.value(opened)
            tab.press("Enter", 13, "\r")
            assert summaries and tab.value(opened) is not before
            tab.value("document.querySelector('nav a[href=\"/quarantine\"]').focus()")
            tab.press("Enter", 13, "\r")
            tab._until_there(f"{url}/quarantine")
            assert tab.value("document.querySelector('h1').textContent") == "Quarantine"
    finally:
        child.process.terminate()
    assert child.ended() == 0


@pytest.mark.report
@pytest.mark.skipif(browser.CHROMIUM is None, reason="no chromium on this machine")
def test_a_browser_shows_it_without_complaint(
    hostile: Small, children: Children, tmp_path: Path
) -> None:
    """From the command, which ends without a word: the browser's console stays empty, no script of
    a value runs, a phone is enough."""
    child = children.tidemill("ui", "engagement", "--root", hostile.root, "--port", 0)
    try:
        child.until(lambda: "Ctrl-C" in child.out.read_text())
        (url,) = re.findall(r"http://\S+?(?=;)", child.out.read_text())
        profile = f"--user-data-dir={tmp_path / 'profile'}"
        for path in PATHS:
            dom, said = browser.complaints(f"{url}{path}", profile, "--proxy-server=direct://")
            assert said == [], path
            assert "<h1>" in dom and "data-evil" not in dom and EVIL not in unescape(path)
    finally:
        child.process.terminate()
    assert (child.ended(), child.err.read_text()) == (0, "")
    client = client_of(hostile.root)
    for path in ("/", "/views/engagement", "/quarantine"):
        page = client.get(path).text
        found = browser.measured(browser.framed(page, 390, 6400, tmp_path), profile)
        assert (found["over"], found["width"]) == (0, 390), path
