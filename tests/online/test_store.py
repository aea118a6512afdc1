"""What every store keeps to: newer rows stay, states change one at a time, rows have their time."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from lakes import at
from redis_server import RedisServer, running
from tidemill.config.settings import micros_of
from tidemill.errors import StoreError, UsageError
from tidemill.online import packing, redis_store
from tidemill.online.open_store import open_store
from tidemill.online.published_view import PublishedView
from tidemill.online.store import Entry, Row
from tidemill.online.store_address import StoreAddress

VIEW = PublishedView(
    view="plays",
    pipeline="plays",
    keys={"listener": "string", "song": "bigint"},
    features={"play_count_1h": "bigint", "last_play_1d": "timestamp"},
    empty=(0, None),
    epoch=1,
    gold_version=4,
    as_of=at("10:00"),
    ttl_seconds=3600,
)


def entry(key: tuple, version: int, values: list | None, epoch: int = 1) -> Entry:
    head = packing.head(epoch, version)
    return Entry(
        packing.key_text(key),
        packing.pack_row(head, micros_of(at("10:00")), values),
    )


def row(version: int, *values: object) -> Row:
    return Row(list(values), version, at("10:00"))


def test_rows_are_read_as_they_were_written(address: StoreAddress) -> None:
    store = open_store(address, writes=True)
    keys = [("ann", 1), ("a}b{c", 2), ("Zoë \x00'\"", 3), ("", 2**62)]
    store.write(VIEW, [entry(key, 1, [n, at("09:00")]) for n, key in enumerate(keys)])
    asked = [*keys, ("absent", 1), ("ann", "1")]
    expected = [*(row(1, n, at("09:00")) for n in range(len(keys))), None, None]
    assert store.read(VIEW, asked) == expected
    assert asyncio.run(read_async(address, asked)) == expected
    assert store.read(VIEW, []) == []


async def read_async(address: StoreAddress, keys: list[tuple]) -> list[Row | None]:
    store = open_store(address)
    try:
        assert await store.view_async("plays") is None
        return await store.read_async(VIEW, keys)
    finally:
        await store.close_async()


def test_a_thousand_keys_are_read_at_once(address: StoreAddress) -> None:
    store = open_store(address, writes=True)
    keys = [("ann", n) for n in range(1200)]
    assert store.write(VIEW, [entry(key, 1, [key[1], None]) for key in keys]) == 1200
    assert store.read(VIEW, keys) == [row(1, n, None) for n in range(1200)]


@pytest.mark.parametrize("seed", range(5))
def test_the_newest_row_of_a_key_stays_in_any_order(address: StoreAddress, seed: int) -> None:
    """Within one write too; a key that was deleted does not come back by an older row."""
    choose, store = random.Random(seed), open_store(address, writes=True)
    versions = [(epoch, version) for epoch in (1, 2) for version in (1, 300, 2**40)]
    entries = [
        entry(("k", key), version, None if (epoch, version, key) == (2, 2**40, 1) else
              [epoch, None], epoch)
        for key in range(3)
        for epoch, version in versions
    ]  # fmt: skip
    choose.shuffle(entries)
    cut = choose.randrange(len(entries))
    for part in (entries[:cut], entries[cut:], entries[:3]):
        store.write(VIEW, part)
    newest = row(2**40, 2, None)
    assert store.read(VIEW, [("k", 0), ("k", 1), ("k", 2)]) == [newest, None, newest]


def test_a_state_is_advanced_by_one_of_two(address: StoreAddress) -> None:
    first, second = (open_store(address, writes=True) for _ in range(2))
    assert first.view("plays") is None and first.views() == []
    assert first.advance(VIEW, None)
    assert not second.advance(VIEW, None)
    seen = second.view("plays")
    assert seen == VIEW
    newer = replace(VIEW, gold_version=5, as_of=at("10:01"))
    assert first.advance(newer, seen)
    assert not second.advance(replace(newer, gold_version=6), seen)
    assert second.views() == [newer]


def test_a_row_is_gone_after_its_time(address: StoreAddress) -> None:
    store = open_store(address, writes=True)
    brief = replace(VIEW, ttl_seconds=1)
    store.write(brief, [entry(("ann", 1), 1, [1, None]), entry(("bob", 1), 1, [1, None])])
    store.write(VIEW, [entry(("bob", 1), 1, [1, None])])  # the same row again: renewed
    assert None not in store.read(VIEW, [("ann", 1), ("bob", 1)])
    time.sleep(1.1)
    assert store.read(VIEW, [("ann", 1), ("bob", 1)]) == [None, row(1, 1, None)]


def test_a_sweep_removes_what_is_older_and_of_other_layouts(address: StoreAddress) -> None:
    store = open_store(address, writes=True)
    other, another_view = replace(VIEW, features={"n": "bigint"}), replace(VIEW, view="plays_2")
    store.write(other, [entry(("ann", 1), 9, [1], epoch=9)])
    store.write(another_view, [entry(("ann", 1), 1, [1, None])])
    store.write(VIEW, [entry(("ann", n), 9, [1, None], epoch=n) for n in (1, 2, 3)])
    now = replace(VIEW, epoch=2)
    assert store.sweep(now) == 2
    assert store.read(VIEW, [("ann", n) for n in (1, 2, 3)])[1:] == [row(9, 1, None)] * 2
    assert store.read(other, [("ann", 1)]) == [None]
    assert store.read(another_view, [("ann", 1)]) == [row(1, 1, None)]


WRITER = """
import sys
sys.path[:0] = sys.argv[3:]
from test_store import VIEW, entry
from tidemill.online.open_store import open_store
store = open_store(sys.argv[1], writes=True)
first = int(sys.argv[2])
print("begins", flush=True)
for version in range(first, 10_000, 2):
    store.write(VIEW, [entry(("ann", n), version, [version, None]) for n in range(50)])
"""


def writer(address: StoreAddress, first: int) -> subprocess.Popen[bytes]:
    folders = (str(Path(__file__).parent), *(path for path in sys.path if "support" in path))
    process = subprocess.Popen(
        [sys.executable, "-c", WRITER, address.url, str(first), *folders], stdout=subprocess.PIPE
    )
    assert process.stdout is not None and process.stdout.readline() == b"begins\n"
    return process


@pytest.mark.crash
def test_two_processes_write_and_one_is_killed_in_it(address: StoreAddress) -> None:
    """What it leaves is whole rows, none older than before; the other writes on."""
    writers = [writer(address, first) for first in (0, 1)]
    store, keys, seen = open_store(address, writes=True), [("ann", n) for n in range(50)], [-1] * 50
    try:
        for step in range(20):
            rows = store.read(VIEW, keys)
            versions = [one.gold_version if one else -1 for one in rows]
            assert all(new >= old for new, old in zip(versions, seen, strict=True))
            assert all(one.values == [one.gold_version, None] for one in rows if one)
            seen = versions
            time.sleep(0.05)
            if step == 10:
                writers[0].send_signal(signal.SIGKILL)
    finally:
        for process in writers:
            process.kill()
            process.wait()
    before = max(seen)
    store.write(VIEW, [entry(key, 20_000, [20_000, None]) for key in keys])
    assert before > 0 and store.read(VIEW, keys) == [row(20_000, 20_000, None)] * 50


# -- packing -------------------------------------------------------------------------------------


def test_what_is_packed_comes_back() -> None:
    values = [
        None, True, -(2**63), 2**63 - 1, 1.5, float("inf"), "Zoë", b"\x00\xff", Decimal("-12.340"),
        at("10:00") + timedelta(microseconds=1), date(1969, 1, 2), [1, None], {"a": [Decimal(1)]},
    ]  # fmt: skip
    assert packing.unpack(packing.pack(values)) == values


def test_keys_are_told_apart_by_their_types() -> None:
    utc, berlin = at("10:00"), at("10:00").astimezone(timezone(timedelta(hours=1)))
    keys = [("1",), (1,), (True,), (None,), ("null",), (date(2026, 1, 1),), ("2026-01-01",), (utc,)]
    assert len({packing.key_text(key) for key in keys}) == len(keys)
    assert packing.key_text((utc,)) == packing.key_text((berlin,))
    assert packing.key_text((Decimal("1.50"),)) == packing.key_text((Decimal("1.5"),))


def test_heads_compare_as_their_numbers() -> None:
    heads = [packing.head(*pair) for pair in ((0, 0), (0, 255), (0, 256), (1, 0), (256, 2**50))]
    assert heads == sorted(heads)


# -- what goes wrong -----------------------------------------------------------------------------


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no online store"):
        open_store(str(tmp_path / "none.sqlite")).views()
    (tmp_path / "text.sqlite").write_text("no database, but long enough to look like one" * 100)
    with pytest.raises(StoreError, match=r"text\.sqlite: the online store cannot be used"):
        open_store(str(tmp_path / "text.sqlite")).views()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("redis://ann:secret@127.0.0.1/0", "holds a user or password"),
        ("postgres://127.0.0.1/0", "unknown kind of store 'postgres'"),
    ],
)
def test_an_address_that_is_none(url: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as refused:
        StoreAddress(url)
    assert "secret" not in str(refused.value)


@pytest.mark.redis
def test_a_redis_that_is_away_restarted_full_or_may_evict(tmp_path: Path) -> None:
    with running(tmp_path, "--maxmemory", "3mb", "--maxmemory-policy", "allkeys-lru") as server:
        address = StoreAddress(server.url, connect_seconds=1, answer_seconds=1)
        store = open_store(address, writes=True)
        with pytest.raises(StoreError, match="maxmemory-policy is allkeys-lru"):
            store.check_writable()
        open_store(replace(address, allow_eviction=True)).check_writable()
        server.client().config_set("maxmemory-policy", "noeviction")
        store.check_writable()
        store.write(VIEW, [entry(("ann", 1), 1, [1, None])])
        server.restart()  # empty, and without the scripts
        assert store.read(VIEW, [("ann", 1)]) == [None]
        assert store.write(VIEW, [entry(("ann", 1), 1, [1, None])]) == 1
        server.client().config_set("maxmemory-policy", "noeviction")
        with pytest.raises(StoreError, match="used memory") as full:
            for n in range(100):
                store.write(VIEW, [entry(("ann", n), 2, ["x" * 100_000, None])])
        assert "more `maxmemory`" in str(full.value) and "ann" not in str(full.value)
        assert store.read(VIEW, [("ann", 1)]) != [None]
        server.stop()
        began = time.monotonic()
        with pytest.raises(StoreError, match="Redis does not answer") as away:
            store.read(VIEW, [("ann", 1)])
        assert time.monotonic() - began < 10
        assert server.url in str(away.value)


@pytest.mark.redis
def test_views_are_found_without_a_look_at_every_key(redis: RedisServer) -> None:
    """A server asks each second what there is to ask; of a million keys a look takes a second."""
    store, client = open_store(redis.url, writes=True), redis.client()
    client.flushall()
    for view in (VIEW, replace(VIEW, view="view")):  # whose rows are named as states begin
        store.write(view, [entry(("ann", 1), 1, [1, None])])
        assert store.advance(view, None)
    client.config_resetstat()
    assert [state.view for state in store.views()] == ["plays", "view"]
    assert "cmdstat_scan" not in client.info("commandstats")
    client.delete(redis_store.VIEWS)  # as a store of before has it
    assert [state.view for state in store.views()] == ["plays", "view"]
    assert store.advance(replace(VIEW, gold_version=5), VIEW)
    assert client.smembers(redis_store.VIEWS) == {b"plays", b"view"}


@pytest.mark.redis
def test_a_redis_that_is_slow_is_an_error_in_time(redis: RedisServer) -> None:
    store = open_store(StoreAddress(redis.url, answer_seconds=0.2))
    store.ping()
    redis.client().execute_command("CLIENT", "PAUSE", "3000", "ALL")
    began = time.monotonic()
    try:
        with pytest.raises(StoreError, match="Redis does not answer: Timeout"):
            store.read(VIEW, [("ann", 1)])
        assert time.monotonic() - began < 3
    finally:
        redis.client().execute_command("CLIENT", "UNPAUSE")


@pytest.mark.redis
def test_a_connection_that_is_kept_is_let_go_when_it_fails(redis: RedisServer) -> None:
    """Closed by the server, or given up with an answer to come, which is nobody else's."""
    client = redis.client()
    client.flushall()
    keys = [("ann", 1), ("bob", 2)]
    open_store(redis.url, writes=True).write(VIEW, [entry(k, 1, [k[1], None]) for k in keys])

    async def reads() -> list[list[Row | None]]:
        store, found = open_store(redis.url), []
        found.append(await store.read_async(VIEW, keys[:1]))
        client.client_kill_filter(_type="normal", skipme=True)
        found.append(await store.read_async(VIEW, keys[:1]))
        client.client_pause(500)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(store.read_async(VIEW, keys[:1]), 0.1)
        found.append(await store.read_async(VIEW, keys[1:]))
        await store.close_async()
        return found

    one, two = ([row(1, n, None)] for n in (1, 2))
    assert asyncio.run(reads()) == [one, one, two]


@pytest.mark.redis
def test_a_user_of_an_acl_by_names_of_variables(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis.client().acl_setuser(
        "writer", enabled=True, passwords=["+s3cret"], keys=["tidemill:*"], commands=["+@all"]
    )
    named = StoreAddress(redis.url, username_env="STORE_USER", password_env="STORE_PASSWORD")
    with pytest.raises(UsageError, match="STORE_USER is not set"):
        open_store(named).ping()
    monkeypatch.setenv("STORE_USER", "writer")
    monkeypatch.setenv("STORE_PASSWORD", "wrong")
    with pytest.raises(StoreError, match=r"WRONGPASS|invalid username") as refused:
        open_store(named).ping()
    assert (
        "username_env" in str(refused.value) and "wrong" not in str(refused.value).lower().split()
    )
    monkeypatch.setenv("STORE_PASSWORD", "s3cret")
    store = open_store(named, writes=True)
    store.check_writable()
    assert store.write(VIEW, [entry(("acl", 1), 1, [1, None])]) == 1


@pytest.mark.redis
def test_tls(tmp_path: Path) -> None:
    make = (
        "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout key.pem -out cert.pem "
        "-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1"
    )
    subprocess.run(make.split(), cwd=tmp_path, check=True, capture_output=True)
    files = ("--tls-cert-file", "cert.pem", "--tls-key-file", "key.pem", "--tls-auth-clients", "no")
    with running(tmp_path, "--tls-ca-cert-file", "cert.pem", *files, "--tls-port", "0") as plain:
        port = plain.port + 1 if plain.port < 65535 else plain.port - 1
        plain.client().config_set("tls-port", port)
        url = f"rediss://localhost:{port}/0"
        store = open_store(StoreAddress(url, ca_file=str(tmp_path / "cert.pem")), writes=True)
        assert store.write(VIEW, [entry(("tls", 1), 1, [1, None])]) == 1
        with pytest.raises(StoreError, match="CERTIFICATE_VERIFY_FAILED"):
            open_store(url).ping()


def is_whole(node: Any) -> bool:
    """Whether a node knows of all slots."""
    said = node.execute_command("CLUSTER INFO")
    return "ok" in (said["cluster_state"] if isinstance(said, dict) else str(said))


@pytest.mark.redis
def test_a_cluster_of_two_nodes(tmp_path: Path) -> None:
    """Rows of one key in two views lie on one node: the braces are its hash tag."""
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        folder.mkdir()
    words = ("--cluster-enabled", "yes")
    with running(folders[0], *words) as first, running(folders[1], *words) as second:
        nodes = [first.client(), second.client()]
        for node, slots in zip(nodes, ((0, 8191), (8192, 16383)), strict=True):
            node.execute_command("CLUSTER", "ADDSLOTSRANGE", *slots)
        nodes[0].execute_command("CLUSTER", "MEET", "127.0.0.1", second.port)
        deadline = time.monotonic() + 30
        while not all(is_whole(node) for node in nodes):
            assert time.monotonic() < deadline, "no cluster in time"
            time.sleep(0.1)
        address = StoreAddress(first.url.replace("redis:", "redis-cluster:"))
        store = open_store(address, writes=True)
        store.check_writable()
        keys = [("ann", n) for n in range(200)]
        assert store.write(VIEW, [entry(key, 2, [key[1], None]) for key in keys]) == 200
        assert store.write(VIEW, [entry(key, 1, [0, None]) for key in keys]) == 0
        expected = [row(2, n, None) for n in range(200)]
        assert store.read(VIEW, keys) == expected
        assert asyncio.run(read_async(address, keys)) == expected
        other = replace(VIEW, view="pauses")
        store.write(other, [entry(keys[0], 1, [1, None])])
        assert all(node.dbsize() > 50 for node in nodes)
        tagged = [node.keys(r'tidemill:*:{\["ann",0\]}') for node in nodes]
        assert sorted(map(len, tagged)) == [0, 2]
        assert store.advance(VIEW, None) and store.views() == [VIEW]
        assert store.sweep(replace(VIEW, epoch=2)) == 200
        store.close()


def test_times_of_a_state_keep_their_zone(address: StoreAddress) -> None:
    store = open_store(address, writes=True)
    at_berlin = datetime(2026, 10, 25, 2, 30, tzinfo=timezone(timedelta(hours=1)))
    store.advance(replace(VIEW, as_of=at_berlin), None)
    state = store.view("plays")
    assert state is not None and state.as_of == at_berlin
    assert state.as_of.utcoffset() == timedelta(0)
