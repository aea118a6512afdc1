"""What an answer costs a client: `tidemill serve` over loopback, beside bare redis-py and Feast.

    http       POST /v1/features, JSON in and out, a connection for each client
    MGET       the same rows by redis-py, not decoded: the floor
    HGETALL    the same values as hashes, a pipeline for several keys
    Feast      `feast serve` over HTTP, its store in the same Redis, the same values (--feast)

Every client asks again as soon as it has its answer. All keys that are asked are compared first.
`--write` puts the table into docs/benchmarks.md. Starts a Redis of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import redis
from measuring import machine, say, temporary, write
from peers import feast_serving
from publish import server

from tidemill.config.settings import micros_of
from tidemill.online import packing
from tidemill.online.open_store import open_store
from tidemill.online.published_view import PublishedView
from tidemill.online.store import Entry

NAMES = [f"{a}_count_{w}" for w in ("1d", "12h", "1h") for a in ("select", "highlight", "view")]
AT_ONCE = 10_000
WRITTEN = 5_000  # rows a second of a publish
COMPARED = 1_000
Key = tuple[str, str]
Asking = Callable[[], Callable[[list[int]], Any]]  # makes a client


@dataclass
class Measured:
    """Seconds of a kind: as a client sees them, and by the server's own clock."""

    seen: list[float] = field(default_factory=list)
    inside: list[float] = field(default_factory=list)


def key(number: int) -> Key:
    return f"profile-{number}", f"title-{number % 997}"


def values(number: int) -> list[int]:
    return [number * (place + 7) % 900 for place in range(9)]


def state() -> PublishedView:
    now = datetime.now(timezone.utc)
    keys, features = {"profile_id": "string", "gti": "string"}, dict.fromkeys(NAMES, "BIGINT")
    empty = (0,) * 9
    return PublishedView(
        "engagement", "engagement", keys, features, empty, "g", "t", 1, 1, now, now, now, 90_000
    )


def entries(view: PublishedView, numbers: range) -> list[Entry]:
    head, at = packing.head(view.epoch, view.gold_version), micros_of(view.as_of)
    packed = ((key(n), packing.pack_row(head, at, values(n))) for n in numbers)
    return [Entry(packing.key_text(one), row) for one, row in packed]


def fill(url: str, port: int, keys: int) -> None:
    """Write each key as a row, and as a hash."""
    store, view = open_store(url, writes=True), state()
    bare = redis.Redis(port=port)
    for start in range(0, keys, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, keys))
        store.write(view, entries(view, numbers))
        pipeline = bare.pipeline(transaction=False)
        for n in numbers:
            pipeline.hset(f"h:{n}", mapping=dict(zip(NAMES, values(n), strict=True)))
        pipeline.execute()
    store.advance(view, store.view(view.view))


def publishing(url: str, keys: int) -> None:
    """Write rows as a publish does, until the process is ended."""
    store, version, start = open_store(url, writes=True), 1, 0
    while True:
        begun, version = time.monotonic(), version + 1
        view = replace(state(), gold_version=version)
        store.write(view, entries(view, range(start, start + WRITTEN)))
        store.advance(view, store.view(view.view))
        start = (start + WRITTEN) % (keys - WRITTEN)
        time.sleep(max(0.0, 1 - (time.monotonic() - begun)))


# -- who asks ------------------------------------------------------------------------------------


class Http:
    """A connection that stays, read by hand: httpx's own time is not the server's."""

    def __init__(self, port: int, path: str):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"

    def post(self, document: Any) -> tuple[bytes, bytes]:
        body = json.dumps(document).encode()
        head = f"{self.head}Content-Length: {len(body)}\r\n\r\n".encode()
        self.socket.sendall(head + body)
        got = b""
        while b"\r\n\r\n" not in got:
            got += self._some()
        said, _, rest = got.partition(b"\r\n\r\n")
        length = int(re.search(rb"(?i)content-length: (\d+)", said)[1])  # type: ignore[index]
        while len(rest) < length:
            rest += self._some()
        assert said.startswith(b"HTTP/1.1 200"), rest
        return said, rest

    def _some(self) -> bytes:
        some = self.socket.recv(1 << 16)
        assert some, "the server closed"
        return some


def http(port: int, inside: list[float]) -> Asking:
    def client() -> Callable[[list[int]], Any]:
        connection = Http(port, "/v1/features")

        def ask(numbers: list[int]) -> Any:
            keys = [key(n) for n in numbers]
            said, body = connection.post({"view": "engagement", "keys": keys})
            inside.append(float(re.search(rb"dur=([\d.]+)", said)[1]) / 1000)  # type: ignore[index]
            return json.loads(body)

        return ask

    return client


def mget(port: int) -> Asking:
    prefix = f"tidemill:engagement:{state().layout}:"

    def client() -> Callable[[list[int]], Any]:
        bare = redis.Redis(port=port)
        return lambda ns: bare.mget([f"{prefix}{{{packing.key_text(key(n))}}}" for n in ns])

    return client


def hgetall(port: int) -> Asking:
    def client() -> Callable[[list[int]], Any]:
        bare = redis.Redis(port=port)

        def ask(numbers: list[int]) -> Any:
            if len(numbers) == 1:
                return [bare.hgetall(f"h:{numbers[0]}")]
            pipeline = bare.pipeline(transaction=False)
            for n in numbers:
                pipeline.hgetall(f"h:{n}")
            return pipeline.execute()

        return ask

    return client


def feast(port: int) -> Asking:
    features = [f"engagement:{name}" for name in NAMES]

    def client() -> Callable[[list[int]], Any]:
        connection = Http(port, "/get-online-features")

        def ask(numbers: list[int]) -> Any:
            keys = [key(n) for n in numbers]
            entities = {"profile_id": [k[0] for k in keys], "gti": [k[1] for k in keys]}
            _, body = connection.post({"features": features, "entities": entities})
            return json.loads(body)

        return ask

    return client


# -- equal, then timed ---------------------------------------------------------------------------


def check(kinds: dict[str, Asking], numbers: list[int]) -> None:
    """Compare what each kind answers with the values that were written."""
    for start in range(0, len(numbers), 100):
        part = numbers[start : start + 100]
        true = [values(n) for n in part]
        for kind, asking in kinds.items():
            assert decoded(kind, asking()(part)) == true, kind


def decoded(kind: str, answer: Any) -> list[list[int]]:
    if kind == "http":
        return [list(row["values"].values()) for row in answer["rows"]]
    if kind == "MGET":
        return [list(packing.unpack_row(row)[1] or []) for row in answer]
    if kind == "HGETALL":
        return [[int(row[name.encode()]) for name in NAMES] for row in answer]
    by_name = dict(zip(answer["metadata"]["feature_names"], answer["results"], strict=True))
    return [list(row) for row in zip(*(by_name[name]["values"] for name in NAMES), strict=True)]


def timed(asking: Asking, clients: int, batch: int, seconds: float, numbers: range) -> list[float]:
    """Return how long each request took, of so many clients that ask without a pause."""
    took: list[list[float]] = [[] for _ in range(clients)]
    barrier = threading.Barrier(clients)

    def run(mine: list[float]) -> None:
        ask, drawn = asking(), random.Random(len(mine))
        ask([drawn.choice(numbers) for _ in range(batch)])
        barrier.wait()
        end = time.perf_counter() + seconds
        while (begun := time.perf_counter()) < end:
            ask([drawn.choice(numbers) for _ in range(batch)])
            mine.append(time.perf_counter() - begun)

    threads = [threading.Thread(target=run, args=(mine,)) for mine in took]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(took), "a client ended early"
    return [one for mine in took for one in mine]


def at(share: float, seconds: list[float]) -> float:
    return sorted(seconds)[min(len(seconds) - 1, int(len(seconds) * share))] * 1000


@contextmanager
def started(*command: str, port: int, **environment: str) -> Iterator[None]:
    """Run a program until the block ends; begin when it listens."""
    process = subprocess.Popen(command, env={**os.environ, **environment})
    try:
        deadline = time.monotonic() + 90
        while port:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, "it ended"
                assert time.monotonic() < deadline, "it does not listen"
                time.sleep(0.1)
        yield
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


# -- the table -----------------------------------------------------------------------------------


def rounds(
    kinds: dict[str, Asking], inside: list[float], said: argparse.Namespace, numbers: range
) -> Iterator[list[str]]:
    """Yield a line for each number of keys and clients: the kinds take turns."""
    for batch in said.batches:
        for clients in said.clients:
            found = {kind: Measured() for kind in kinds}
            for _ in range(said.rounds):
                for kind, asking in kinds.items():
                    inside.clear()
                    found[kind].seen += timed(asking, clients, batch, said.seconds, numbers)
                    found[kind].inside += inside
            yield line(batch, clients, found)


def line(batch: int, clients: int, found: dict[str, Measured]) -> list[str]:
    def pair(seconds: list[float]) -> str:
        return f"{at(0.5, seconds):.2f} / {at(0.99, seconds):.2f}"

    own, floor = found["http"], found["MGET"]
    cells = [str(batch), str(clients), pair(own.seen), pair(own.inside)]
    cells += [pair(one.seen) for kind, one in found.items() if kind != "http"]
    ratios = [at(share, own.seen) / at(share, floor.seen) for share in (0.5, 0.99)]
    cells.append(" / ".join(f"{ratio:.1f}x" for ratio in ratios))
    if "Feast" in found:
        ratios = [at(share, found["Feast"].seen) / at(share, own.seen) for share in (0.5, 0.99)]
        cells.append(" / ".join(f"{ratio:.1f}x" for ratio in ratios))
    return cells


def table(kinds: dict[str, Asking], lines: list[tuple[str, list[list[str]]]], keys: int) -> str:
    others = [kind for kind in kinds if kind != "http"]
    more = ["Feast / http"] if "Feast" in kinds else []
    heads = ["keys", "clients", "http", "server time", *others, "http / MGET", *more]
    text = (
        f"{keys:,} keys of 9 features in Redis, all on one machine with the clients; milliseconds, "
        f"p50 / p99.\n\n{machine().partition('Java')[0].rstrip(' ,')}, redis-py "
        f"{redis.__version__}.\n"
    )
    for title, rows in lines:
        text += f"\n{title}:\n\n| {' | '.join(heads)} |\n|{'---:|' * len(heads)}\n"
        text += "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one kind in one round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 10, 50, 100])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--feast", action="store_true", help="beside Feast, which it installs")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--publish", help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.publish:
        publishing(said.publish, said.keys)
    with temporary("serving") as folder, server(folder) as port:
        run(said, folder, port)


def run(said: argparse.Namespace, folder: Path, port: int) -> None:
    url, own = f"redis://127.0.0.1:{port}/0", free_port()
    say(f"writing {said.keys:,} keys")
    fill(url, port, said.keys)
    serve = (sys.executable, "-m", "tidemill.cli", "serve", "--store", url, "--port", str(own))
    inside: list[float] = []
    kinds = {"http": http(own, inside), "MGET": mget(port), "HGETALL": hgetall(port)}
    with (
        started(*serve, port=own),
        feast_serving.running(said.feast, folder, port, said.keys) as other,
    ):
        if other:
            kinds["Feast"] = feast(other)
        check(kinds, random.Random(1).sample(range(said.keys), COMPARED))
        numbers, lines = range(said.keys), []
        say("all answers are equal; nothing is written meanwhile")
        lines.append(("Nothing written meanwhile", list(rounds(kinds, inside, said, numbers))))
        say("while rows are published")
        more = (sys.executable, __file__, "--publish", url, "--keys", str(said.keys))
        with started(*more, port=0):
            title = f"While {WRITTEN:,} rows a second are published"
            lines.append((title, list(rounds(kinds, inside, said, numbers))))
    text = table(kinds, lines, said.keys)
    print(text)
    if said.write:
        write(text, "serving")


if __name__ == "__main__":
    main()
