"""The client, sync and async, over HTTP and in the process: the same answers, the same errors."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from children import Child, Children
from published import CARDS, LAST, NOW, a_store, publish
from tidemill import AsyncFeatureClient, FeatureClient
from tidemill.config.settings import iso
from tidemill.errors import RequestError, StoreError, UsageError
from tidemill.online.client.question import of_view
from tidemill.online.open_store import open_store

KEYS = [{"bank": 1, "card": "a"}, (2, "a")]
TOKEN = "a-token-of-some-length"
Ask = Callable[[str, Callable[[Any], Any]], Any]


def sync(address: str, question: Callable[[Any], Any]) -> Any:
    with FeatureClient(address, token=TOKEN) as client:
        return question(client)


def awaited(address: str, question: Callable[[Any], Any]) -> Any:
    async def ask() -> Any:
        async with AsyncFeatureClient(address, token=TOKEN) as client:
            return await question(client)

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return a_store(tmp_path_factory.mktemp("store"))


@pytest.fixture(scope="module")
def server(path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    children = Children(tmp_path_factory.mktemp("server"))
    words = ("serve", "--store", path, "--port", "0")
    child = children.tidemill(*words, TIDEMILL_NOW=iso(NOW), TIDEMILL_TOKEN=TOKEN)
    yield _url(child)
    child.process.terminate()
    assert child.ended() == 0


def _url(child: Child) -> str:
    child.until(lambda: "Ctrl-C" in child.out.read_text())
    return child.out.read_text().split(" at ")[1].split("/v1")[0]


@pytest.fixture(params=["http", "in process"])
def address(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TIDEMILL_NOW", iso(NOW))
    name = "server" if request.param == "http" else "path"
    found: str = request.getfixturevalue(name)
    return found


def test_a_key_as_a_frame_has_it(address: str) -> None:
    import numpy

    bank, card = numpy.int64(1), numpy.str_("a")
    keys = [(bank, card), {"bank": bank, "card": card}]
    rows = sync(address, lambda client: client.features("cards", keys))["rows"]
    assert [row["found"] for row in rows] == [True, True]


def test_a_decimal_is_sent_as_text() -> None:
    document = of_view("prices", [{"price": Decimal("1.50")}, [Decimal("2")]], None, None, None)
    assert document["keys"] == [{"price": "1.50"}, ["2"]]


@pytest.mark.parametrize("ask", [sync, awaited])
def test_values_are_python_s(address: str, ask: Ask) -> None:
    answer = ask(address, lambda c: c.features("cards", KEYS))
    first, second = answer["rows"]
    assert first["values"]["count_1d"] == 3
    assert first["values"]["sum_1d"] == Decimal("1.50")
    assert first["values"]["last_1d"] == LAST
    assert (first["found"], second["found"]) == (True, False)
    assert second["values"]["count_1d"] == 0


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "features": lambda c: c.features("cards", KEYS),
    "some": lambda c: c.features("cards", KEYS, ("count_1d",)),
    "contains": lambda c: c.features("cards", KEYS, contains={"shops_cuckoo_1d": ("s1", "s9")}),
    "views": lambda c: c.features_of_views({"cards": {}, "banks": {}}, KEYS[:1]),
    "describe": lambda c: c.describe("cards"),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_all_four_say_the_same(
    server: str, path: str, question: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDEMILL_NOW", iso(NOW))
    answers = [ask(address, question) for address in (server, path) for ask in (sync, awaited)]
    assert answers[0] == answers[1] == answers[2] == answers[3]


@pytest.mark.parametrize("ask", [sync, awaited])
def test_what_is_refused(address: str, ask: Ask) -> None:
    with pytest.raises(RequestError, match="did you mean 'cards'") as unknown:
        ask(address, lambda c: c.features("crads", KEYS))
    assert unknown.value.status == 404
    with pytest.raises(RequestError, match=r"keys\[0\]: is no key") as wrong:
        ask(address, lambda c: c.features("cards", [{"card": "a"}]))
    assert wrong.value.status == 422
    with pytest.raises(RequestError) as none:
        ask(address, lambda c: c.describe("crads"))
    assert none.value.status == 404


def test_limits_of_a_store_that_is_read_here(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMILL_NOW", iso(NOW + timedelta(days=2)))
    with FeatureClient(path) as client, pytest.raises(StoreError, match="ago"):
        client.features("cards", KEYS)
    with FeatureClient(path, limits={"refuse_after": "30d"}) as client:
        assert client.features("cards", KEYS)["stale"]
    with pytest.raises(UsageError, match="did you mean 'refuse_after'"):
        FeatureClient(path, limits={"refuse_aftr": "30d"})


def test_a_wrong_token(server: str) -> None:
    with FeatureClient(server, token="wrong") as client, pytest.raises(RequestError) as refused:
        client.features("cards", KEYS)
    assert refused.value.status == 401


@pytest.mark.parametrize("ask", [sync, awaited])
def test_nobody_there(tmp_path: Path, ask: Ask) -> None:
    for address in ("http://127.0.0.1:9", str(tmp_path / "none.sqlite")):
        with pytest.raises(StoreError):
            ask(address, lambda c: c.features("cards", KEYS))


def test_a_publish_is_seen(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidemill.online.answers import feature_service

    monkeypatch.setattr(feature_service, "EVERY", 0.0)
    monkeypatch.setenv("TIDEMILL_NOW", iso(NOW))
    own = a_store(tmp_path)
    with FeatureClient(own) as client:
        before = client.features("cards", KEYS)
        newer = replace(CARDS, gold_version=13)
        publish(open_store(own, writes=True), newer, {(2, "a"): [5, None, None, [], [16, 4, []]]})
        after = client.features("cards", KEYS)
    assert [row["found"] for row in before["rows"]] == [True, False]
    assert [row["found"] for row in after["rows"]] == [True, True]
    assert after["gold_version"] == 13


def test_in_process_needs_no_server_s_packages(path: str) -> None:
    said = (
        "import sys\n"
        "for name in ('fastapi', 'httpx', 'orjson', 'uvicorn', 'redis'): sys.modules[name] = None\n"
        f"import tidemill; client = tidemill.FeatureClient({path!r})\n"
        "print(client.describe('cards')['gold_version'])"
    )

    answer = subprocess.run(
        [sys.executable, "-c", said], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "12\n"


def test_threads_share_few_connections(server: str) -> None:
    with FeatureClient(server, token=TOKEN, connections=2) as client:
        with ThreadPoolExecutor(8) as threads:
            each = list(threads.map(lambda _: client.features("cards", KEYS), range(80)))
    assert all(answer == each[0] for answer in each)


def test_a_server_that_was_restarted_is_asked_again(path: str, tmp_path: Path) -> None:
    children, port = Children(tmp_path), "0"
    client: FeatureClient | None = None
    for _ in range(2):
        words = ("serve", "--store", path, "--port", port)
        child = children.tidemill(*words, TIDEMILL_NOW=iso(NOW), TIDEMILL_TOKEN=TOKEN)
        url = _url(child)
        port = url.rpartition(":")[2]
        client = client or FeatureClient(url, token=TOKEN)
        assert client.features("cards", KEYS)["rows"][0]["found"]
        child.process.terminate()
        assert child.ended() == 0
    assert client
    with pytest.raises(StoreError, match="does not answer"):
        client.features("cards", KEYS)
    client.close()
