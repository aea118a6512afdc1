"""What the API answers: values, age, unknown keys, filters, several views, and each status."""

from __future__ import annotations

import asyncio
import json
import logging
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from prometheus_client.parser import text_string_to_metric_families

from published import AS_OF, BANKS, CARDS, NOW, Server, a_store, publish, served
from tidemill.errors import StoreError
from tidemill.online.open_store import open_store
from tidemill.online.server.tokens import Tokens

KNOWN, UNKNOWN = {"bank": 1, "card": "a"}, {"bank": 2, "card": "a"}
WHEN = {"as_of": "2026-11-21T10:05:00Z", "age_seconds": 12.5, "stale": False}
SECRET = "a-token-of-some-length"
WITH_TOKEN = {"authorization": f"Bearer {SECRET}"}
VALUES = {
    "count_1d": 3,
    "sum_1d": "1.50",
    "last_1d": "2026-11-21T10:04:30Z",
    "shops_most_frequent_1d": [{"item": "s1", "count": 2}, {"item": "s2", "count": 1}],
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with served(a_store(tmp_path)) as server:
        yield server


def error(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.text
    assert list(response.json()) == ["error"]
    found: dict[str, Any] = response.json()["error"]
    assert list(found) == ["kind", "message", "where", "expected"]
    assert "Traceback" not in response.text
    return found


# -- answers -------------------------------------------------------------------------------------


def test_a_key_s_features(server: Server) -> None:
    names = list(VALUES)
    answer = server.ask({"view": "cards", "keys": [KNOWN], "features": names}).json()
    row = {"key": KNOWN, "found": True, **WHEN, "values": VALUES}
    assert answer == {"view": "cards", "gold_version": 12, **WHEN, "rows": [row]}


def test_all_features_and_a_key_as_list(server: Server) -> None:
    row = server.ask({"view": "cards", "keys": [[1, "a"]]}).json()["rows"][0]
    assert row["key"] == [1, "a"]
    assert list(row["values"]) == list(CARDS.features)


def test_an_unknown_key_has_the_empty_values_and_says_so(server: Server) -> None:
    rows = server.ask({"view": "cards", "keys": [UNKNOWN, KNOWN]}).json()["rows"]
    assert [row["found"] for row in rows] == [False, True]
    assert rows[0]["values"]["count_1d"] == 0
    assert rows[0]["values"]["sum_1d"] is None
    assert rows[0]["as_of"] == WHEN["as_of"]


def test_filters_say_what_they_may_hold(server: Server) -> None:
    asked = {"view": "cards", "keys": [KNOWN, UNKNOWN], "features": ["count_1d"]}
    one, several = {"shops_cuckoo_1d": "s1"}, {"shops_cuckoo_1d": ["s2", "s9"]}
    rows = server.ask({**asked, "contains": one}).json()["rows"]
    assert [row["contains"] for row in rows] == [
        {"shops_cuckoo_1d": True},
        {"shops_cuckoo_1d": False},
    ]
    rows = server.ask({**asked, "contains": several}).json()["rows"]
    assert rows[0]["contains"] == {"shops_cuckoo_1d": [True, False]}


def test_several_views_of_one_entity(server: Server) -> None:
    asked = {"views": {"cards": {"features": ["count_1d"]}, "banks": {}}, "keys": [KNOWN]}
    views = server.ask(asked).json()["views"]
    assert views["cards"]["rows"][0]["values"] == {"count_1d": 3}
    assert views["banks"]["rows"][0]["values"] == {"approx_distinct_1d": 7}


def test_the_views_and_one_of_them(server: Server) -> None:
    listed = server.http.get("/v1/features").json()["views"]
    assert [view["view"] for view in listed] == ["banks", "cards"]
    view = server.http.get("/v1/features/cards").json()
    assert view["keys"] == {"bank": "bigint", "card": "string"}
    assert view["filters"] == ["shops_cuckoo_1d"]
    assert view["empty"]["count_1d"] == 0
    assert view["age_seconds"] == 12.5


# A row that is newer than the state, as a publish is under way:
#
#     10:05 state          10:06 this row          now
def test_a_row_that_is_ahead_of_the_state_has_its_own_as_of(tmp_path: Path) -> None:
    path = a_store(tmp_path)
    store = open_store(path, writes=True)
    ahead = replace(CARDS, gold_version=13, as_of=AS_OF + timedelta(minutes=1))
    state = store.view("cards")
    publish(store, ahead, {(1, "a"): [4, None, None, [], [16, 4, []]]})
    assert store.advance(state or CARDS, ahead)
    with served(path, now=AS_OF + timedelta(minutes=1, seconds=5)) as server:
        answer = server.ask({"view": "cards", "keys": [KNOWN, UNKNOWN]}).json()
    assert (answer["age_seconds"], answer["gold_version"]) == (65.0, 12)
    assert [row["age_seconds"] for row in answer["rows"]] == [5.0, 65.0]
    assert answer["rows"][0]["values"]["count_1d"] == 4


def test_a_layout_that_changed_meanwhile_is_no_unknown_key(tmp_path: Path) -> None:
    path = a_store(tmp_path)
    with served(path) as server:
        other = replace(CARDS, features={"count_1h": "BIGINT"}, empty=(0,), epoch=2)
        store = open_store(path, writes=True)
        publish(store, other, {(1, "a"): [5]})
        store.sweep(other)
        rows = server.ask({"view": "cards", "keys": [KNOWN]}).json()["rows"]
    assert rows[0]["found"]
    assert rows[0]["values"] == {"count_1h": 5}


# -- age -----------------------------------------------------------------------------------------


def test_stale_past_the_limit_and_refused_past_the_next(tmp_path: Path) -> None:
    path, asked = a_store(tmp_path), {"view": "cards", "keys": [KNOWN]}
    limits = {"stale_after": 12.5, "refuse_after": 60.0}
    with served(path, **limits) as server:
        assert not server.ask(asked).json()["stale"]
    with served(path, now=NOW + timedelta(seconds=1), **limits) as server:
        answer = server.ask(asked).json()
        assert answer["stale"]
        assert answer["rows"][0]["stale"]
        assert server.http.get("/ready").status_code == 200
    with served(path, now=NOW + timedelta(minutes=1), **limits) as server:
        assert "is the pipeline running?" in error(server.ask(asked), 503)["expected"]
        assert server.http.get("/ready").status_code == 503
        assert server.http.get("/health").status_code == 200


def test_one_fresh_view_is_enough_for_an_answer(tmp_path: Path) -> None:
    path = a_store(tmp_path)
    store = open_store(path, writes=True)
    publish(store, replace(BANKS, as_of=AS_OF - timedelta(days=2)), {})
    with served(path) as server:
        views = server.ask({"views": {"cards": {}, "banks": {}}, "keys": [KNOWN]}).json()["views"]
        assert (views["cards"]["stale"], views["banks"]["stale"]) == (False, True)
        assert server.ask({"view": "banks", "keys": [[1]]}).status_code == 503


# -- refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "where", "text"),
    [
        ([], "body", "is no object"),
        ({"keys": [KNOWN]}, "view", "is no name of a view"),
        ({"view": "cards"}, "keys", "is no list"),
        ({"view": "cards", "keys": []}, "keys", "has 0 keys"),
        ({"view": "cards", "keys": [KNOWN] * 1001}, "keys", "has 1001 keys"),
        ({"view": "cards", "keys": [KNOWN, {"bank": 1}]}, "keys[1]", "is no key"),
        ({"view": "cards", "keys": [{**KNOWN, "more": 1}]}, "keys[0]", "is no key"),
        ({"view": "cards", "keys": [[1]]}, "keys[0]", "is no key"),
        ({"view": "cards", "keys": [["1", "a"]]}, "keys[0]", "is no key"),
        ({"view": "cards", "keys": [[True, "a"]]}, "keys[0]", "is no key"),
        ({"view": "cards", "keys": [[1, None]]}, "keys[0]", "is no key"),
        ({"view": "cards", "keys": [[1, "x" * 1025]]}, "keys[0]", "is no key"),
        ({"view": "cards", "keys": [KNOWN], "features": []}, "features", "is no list of features"),
        ({"view": "cards", "keys": [KNOWN], "features": ["cuont_1d"]}, "features", "'count_1d'?"),
        ({"view": "cards", "keys": [KNOWN], "contains": {"count_1d": 1}}, "contains", "no filter"),
        ({"view": "cards", "keys": [KNOWN], "feature": ["x"]}, "body", "unknown field"),
        ({"views": {}, "keys": [KNOWN]}, "views", "is no object of views"),
        ({"views": {"cards": 1}, "keys": [KNOWN]}, "views[0]", "is no object"),
        ({"views": {"cards": {}}, "keys": [[1, "a"]]}, "keys[0]", "is no key"),
    ],
)
def test_what_cannot_be_asked(server: Server, asked: Any, where: str, text: str) -> None:
    found = error(server.ask(asked), 422)
    assert found["where"] == where
    assert text in found["message"]


def test_an_unknown_view_and_an_unknown_path(server: Server) -> None:
    found = error(server.ask({"view": "crads", "keys": [KNOWN]}), 404)
    assert found["message"] == "unknown view 'crads'; did you mean 'cards'?"
    error(server.http.get("/v1/features/crads"), 404)
    error(server.http.get("/v2"), 404)
    error(server.http.get("/docs"), 404)
    error(server.http.put("/v1/features"), 405)


def test_a_body_that_is_too_large(tmp_path: Path) -> None:
    with served(a_store(tmp_path), body_bytes=200) as server:
        error(server.ask({"view": "cards", "keys": [[1, "x" * 200]]}), 413)
        grows = (b" " * 50 for _ in range(10))  # says no length
        response = server.http.post("/v1/features", content=grows)
        assert "at most 200 bytes" in error(response, 413)["expected"]


def test_bytes_that_are_no_request_are_never_a_defect(server: Server) -> None:
    shuffled, good = random.Random(1), json.dumps({"view": "cards", "keys": [KNOWN, [1, "a"]]})
    bodies = [b"", b"null", b"\xff", b"[" * 5000, b'{"view":"cards","keys":[["1","\\ud800"]]}']
    for _ in range(300):
        text = bytearray(good.encode())
        for _ in range(shuffled.randint(1, 4)):
            text[shuffled.randrange(len(text))] = shuffled.choice(b'{}[]",:019ax\x00\xff')
        bodies.append(bytes(text))
    for body in bodies:
        response = server.http.post("/v1/features", content=body)
        assert response.status_code in (200, 404, 422), (body, response.text)


class Stuck:
    """A store whose reads end when they may."""

    def __init__(self, store: Any, until: Any = None):
        self._store, self._until = store, until

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read_async(self, *_: object) -> Any:
        if self._until is None:
            raise StoreError("Redis does not answer", where="redis://somewhere")
        await asyncio.sleep(self._until)


def test_a_store_that_is_down_or_slow(tmp_path: Path) -> None:
    store, asked = open_store(a_store(tmp_path)), {"view": "cards", "keys": [KNOWN]}
    down: Any = Stuck(store)
    with served(down) as server:
        response = server.ask(asked)
        assert error(response, 503)["kind"] == "store"
        assert response.headers["retry-after"] == "1"
    slow: Any = Stuck(store, 5)
    with served(slow, seconds=0.05) as server:
        assert "in time" in error(server.ask(asked), 503)["message"]


def test_too_many_at_once(tmp_path: Path) -> None:
    import httpx

    slow: Any = Stuck(open_store(a_store(tmp_path)), 0.3)
    asked = {"view": "cards", "keys": [KNOWN]}

    async def three(app: Any) -> list[int]:
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            posts = [http.post("/v1/features", json=asked) for _ in range(3)]
            responses = await asyncio.gather(*posts)
            assert (await http.get("/health")).status_code == 200
            return sorted(response.status_code for response in responses)

    with served(slow, concurrent=2, seconds=0.2) as server:
        assert asyncio.run(three(server.http.app)) == [429, 503, 503]


# -- who may ask ---------------------------------------------------------------------------------


def test_a_token(tmp_path: Path) -> None:
    tokens = Tokens.from_environment("T", "0.0.0.0", {"T": f"another-token-that-is-old {SECRET}"})
    asked = {"view": "cards", "keys": [KNOWN]}
    with served(a_store(tmp_path), tokens=tokens) as server:
        for wrong in ({}, {"authorization": SECRET}, {"authorization": f"Bearer {SECRET}x"}):
            response = server.ask(asked, **wrong)
            error(response, 401)
            assert response.headers["www-authenticate"] == "Bearer"
        assert server.ask(asked, **WITH_TOKEN).status_code == 200
        assert server.ask(asked, **WITH_TOKEN, host="features.example").status_code == 200
        for path in ("/v1/features/cards", "/metrics", "/openapi.json"):
            assert server.http.get(path).status_code == 401
        assert server.http.get("/health").status_code == 200
        assert server.http.get("/ready").status_code == 200


def test_without_a_token_another_s_name_for_this_machine_is_refused(server: Server) -> None:
    asked = {"view": "cards", "keys": [KNOWN]}
    error(server.ask(asked, host="rebound.example:8790"), 403)
    for name in ("localhost", "127.0.0.1:8790", "[::1]:8790"):
        assert server.ask(asked, host=name).status_code == 200


# -- what is kept --------------------------------------------------------------------------------


def test_no_key_is_in_a_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    class Broken(Stuck):
        async def read_async(self, view: Any, keys: Any) -> Any:
            raise ValueError(f"cannot read {keys}")

    caplog.set_level(logging.DEBUG)
    broken: Any = Broken(open_store(a_store(tmp_path)))
    with served(broken) as server:
        found = error(server.ask({"view": "cards", "keys": [[1, "person-17"]]}), 500)
        assert found["kind"] == "defect"
        server.ask({"view": "cards", "keys": [["person-17", "person-17"]]})
    said = [record for record in caplog.records if record.name.startswith("tidemill")]
    assert "ValueError at test_answers_over_http.py" in said[0].getMessage()
    printed = capfd.readouterr()
    assert "person-17" not in caplog.text + printed.out + printed.err


def test_the_response_log_holds_what_was_answered(tmp_path: Path) -> None:
    log = tmp_path / "answers.jsonl"
    with served(a_store(tmp_path), log=log) as server:
        one = server.ask({"view": "cards", "keys": [KNOWN, UNKNOWN]}).json()
        both = server.ask({"views": {"cards": {}, "banks": {}}, "keys": [KNOWN]}).json()
        server.ask({"view": "cards", "keys": [[1]]})
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    at = {"at": "2026-11-21T10:05:12.500000Z"}
    assert lines == [at | one, *(at | answer for answer in both["views"].values())]
    assert log.stat().st_mode & 0o777 == 0o600


def test_metrics(server: Server) -> None:
    server.ask({"view": "cards", "keys": [KNOWN, UNKNOWN]})
    server.ask({"view": "no-such-view", "keys": [KNOWN]})
    server.http.get("/some/path")
    text = server.http.get("/metrics").text
    samples = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["tidemill_serve_requests_total", "/v1/features", "200"] == 1
    assert samples["tidemill_serve_requests_total", "/v1/features", "404"] == 1
    assert samples["tidemill_serve_requests_total", "404", "other"] == 1
    assert samples["tidemill_serve_keys_total", "cards", "true"] == 1
    assert samples["tidemill_serve_keys_total", "cards", "false"] == 1
    assert samples["tidemill_serve_age_seconds", "cards"] == 12.5
    assert samples["tidemill_serve_seconds_count", "/v1/features"] == 2
    assert samples["tidemill_serve_store_seconds_count",] == 1
    assert "no-such-view" not in text


def test_openapi_says_what_is_so(server: Server) -> None:
    document = server.http.get("/openapi.json").json()
    post = document["paths"]["/v1/features"]["post"]
    body = post["requestBody"]["content"]["application/json"]
    for example in body["examples"].values():
        jsonschema.validate(example["value"], body["schema"])
    assert set(post["responses"]) == {"200", "401", "404", "408", "413", "422", "429", "503"}

    def check(value: Any, path: str, method: str, status: int) -> None:
        answer = document["paths"][path][method]["responses"][str(status)]
        schema = answer["content"]["application/json"].get("schema")
        jsonschema.validate(value, {**schema, "components": document["components"]})

    for status, answer in post["responses"].items():
        check(answer["content"]["application/json"]["example"], "/v1/features", "post", int(status))
    asked = {"view": "cards", "keys": [KNOWN, UNKNOWN], "contains": {"shops_cuckoo_1d": "s1"}}
    jsonschema.validate(asked, body["schema"])
    check(server.ask(asked).json(), "/v1/features", "post", 200)
    both = {"views": {"cards": {}, "banks": {}}, "keys": [KNOWN]}
    jsonschema.validate(both, body["schema"])
    check(server.ask(both).json(), "/v1/features", "post", 200)
    check(server.ask({}).json(), "/v1/features", "post", 422)
    check(server.http.get("/v1/features").json(), "/v1/features", "get", 200)
    check(server.http.get("/v1/features/cards").json(), "/v1/features/{view}", "get", 200)
