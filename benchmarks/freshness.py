"""How fresh gold is: the time from an event's writing until the commit of gold that counts it.

    one event every half second ──files | Kafka | Kinesis──► tidemill run --trigger 5s ──► gold
    written at t                                             its key is in the commit at u: u - t

The pipeline is the shipped one by the events' clock, in a process of its own, with all of its
queries at the same trigger. Each event has a key of its own, so gold's change data feed says which
commit counted it, and the time of that commit's file is when every reader could see it. The first
events, while the run is cold, are not counted. Broker and moto run on the same cores.

With `--slices` the events come in files, land, clean and slices have a trigger of 1 s, and the
time is that until `tidemill serve`, asked 20 times a second, counts the event; gold's refresh goes
on beside it each minute. It is measured twice: as it runs, and with slices that read the source
themselves (`direct_slices.py`, a try). `--write` puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from measuring import machine, say, temporary, write
from sources import TOPIC, broker, make_topic

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
sys.path.append(str(Path(__file__).parents[1] / "scripts"))
from kafka import free_port

import tidemill
from kinesis import CREDENTIALS, REGION, serving
from tidemill.lake.session import ivy
from tidemill.lake.session.session import local_session
from tidemill.sources import kafka

EVERY, COLD, TRIGGER = 0.5, 20, "5s"
SLICES_COLD = 60
SLICES, DIRECT = "slices of accepted events", "a try: slices of the source itself"
PATIENCE = 240.0
TIDEMILL = ("-m", "tidemill.cli")
SLICED = """
pipeline: engagement
source: {{kind: files, input: "{input}"}}
clock: event
triggers: {{land: 1s, clean: 1s, slices: 1s, feature: 60s}}
publish: {{slices: true}}
views:
  - name: engagement
    keys: [profile_id, gti]
    event_time: event_timestamp
    schema: {{profile_id: string, gti: string, event_type: string}}
    features:
      - count: {{by: {{event_type: [select, highlight, view]}}}}
        over: [1h, 12h, 1d]
"""
Send = Callable[[int, str], None]


def event(number: int) -> str:
    """Return an event of now, with a key of its own."""
    return json.dumps(
        {
            "event_id": f"e{number}",
            "profile_id": f"p{number}",
            "gti": "g",
            "event_type": "view",
            "event_timestamp": datetime.now(timezone.utc).isoformat(),
        }
    )


@contextmanager
def by_files(folder: Path) -> Iterator[tuple[list[str], Send]]:
    """Yield the words of a source of files, and what writes a file of one event at once."""
    into = folder / "in"
    into.mkdir()

    def send(number: int, text: str) -> None:
        hidden = into / f".{number}"
        hidden.write_text(text + "\n", encoding="utf-8")
        hidden.rename(into / f"{number}.jsonl")

    yield ["--source", "files", "--input", str(into)], send


@contextmanager
def by_kafka(folder: Path) -> Iterator[tuple[list[str], Send]]:
    """Yield the words of a source of a topic, and a producer to it."""
    jars = ":".join(str(path) for path in ivy.class_path(kafka.JARS))
    spark = local_session(driver_memory="1g", extra={"spark.driver.extraClassPath": jars})
    with broker(folder / "broker") as address:
        make_topic(spark, address)
        jvm: Any = spark.sparkContext._jvm
        settings = jvm.java.util.Properties()
        settings.put("bootstrap.servers", address)
        for side in ("key", "value"):
            plain = "org.apache.kafka.common.serialization.StringSerializer"
            settings.put(f"{side}.serializer", plain)
        clients = jvm.org.apache.kafka.clients.producer
        producer = clients.KafkaProducer(settings)
        words = ["--source", "kafka", "--bootstrap-servers", address, "--topics", TOPIC]
        yield words, lambda _, text: producer.send(clients.ProducerRecord(TOPIC, text)).get()
        producer.close()
    spark.stop()


@contextmanager
def by_kinesis(folder: Path) -> Iterator[tuple[list[str], Send]]:
    """Yield the words of a source of a stream, and what puts a record."""
    os.environ.update(CREDENTIALS)
    with serving(folder) as server:
        stream = server.stream("fresh", 2)
        words = ["--source", "kinesis", "--stream", "fresh", "--region", REGION]
        words += ["--endpoint-url", server.endpoint]
        yield words, lambda _, text: stream.put([text])


WAYS: Mapping[str, Any] = {"files": by_files, "kafka": by_kafka, "kinesis": by_kinesis}


@contextmanager
def running(words: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process, stopped in the end; what it said last is printed where something fails."""
    with log.open("wb") as said:
        process = subprocess.Popen([sys.executable, *words], stdout=said, stderr=said)
    try:
        yield process
    except BaseException:
        print(log.read_text()[-3000:], file=sys.stderr)
        raise
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def measure(kind: str, events: int) -> list[float]:
    """Return the seconds of each event but the first, cold ones."""
    with temporary("freshness") as folder, WAYS[kind](folder) as (words, send):
        root, sent = folder / "lake", {}
        send(0, event(0))  # so that a folder has a format
        command = [*TIDEMILL, "run", "engagement", *words]
        command += ["--clock", "event", "--trigger", TRIGGER, "--root", str(root)]
        with running(command, folder / "run.log") as run:
            await_gold(root, run, 1)
            for number in range(1, COLD + events + 1):
                sent[f"p{number}"] = time.time()
                send(number, event(number))
                time.sleep(EVERY)
            await_gold(root, run, COLD + events + 1)
        seen = commits(root / "engagement_features")
        return [seen[key] - at for key, at in list(sent.items())[COLD:]]


def measure_slices(events: int, program: Sequence[str]) -> list[float]:
    """Return the seconds of each event but the first until the prediction API counts it, of a
    pipeline that a program runs."""
    with temporary("slices") as folder, by_files(folder) as (_, send):
        root, file = folder / "lake", folder / "engagement.yaml"
        file.write_text(SLICED.format(input=folder / "in"))
        send(0, event(0))
        words = [*program, "run", str(file), "--root", str(root)]
        with running(words, folder / "run.log") as run:
            await_gold(root, run, 1)
            port, store = free_port(), root / "_tidemill_online.sqlite"
            words = [*TIDEMILL, "serve", "--store", str(store), "--port", str(port)]
            with running(words, folder / "serve.log"):
                sent, seen = asked(f"http://127.0.0.1:{port}", send, events)
        return [seen[key] - at for key, at in list(sent.items())[SLICES_COLD:]]


def asked(url: str, send: Send, events: int) -> tuple[dict[str, float], dict[str, float]]:
    """Return when each event was written, and when it was first counted."""
    client, seen = tidemill.FeatureClient(url), dict[str, float]()
    sent: dict[str, float] = {}
    for number in range(1, SLICES_COLD + events + 1):
        sent[f"p{number}"] = time.time()
        send(number, event(number))
        ask_until(client, sent, seen, time.time() + EVERY)
    ask_until(client, sent, seen, time.time() + PATIENCE, all_seen=True)
    return sent, seen


def ask_until(
    client: tidemill.FeatureClient,
    sent: Mapping[str, float],
    seen: dict[str, float],
    end: float,
    *,
    all_seen: bool = False,
) -> None:
    """Ask for the keys that were not seen, again and again, and keep when each was."""
    while time.time() < end:
        left = [key for key in sent if key not in seen]
        if not left and all_seen:
            return
        if left:
            try:
                rows = client.features("engagement", [[key, "g"] for key in left[-100:]])["rows"]
            except tidemill.errors.TidemillError:
                rows = []  # the server starts
            now = time.time()
            seen.update({row["key"][0]: now for row in rows if row["values"]["view_count_1h"]})
        time.sleep(0.05)
    if all_seen:
        raise SystemExit(f"{len(sent) - len(seen)} events are not seen")


def await_gold(root: Path, run: subprocess.Popen[bytes], keys: int) -> None:
    """Wait until gold has so many keys."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and run.poll() is None:
        path = root / "engagement_features"
        if (path / "_delta_log" / f"{0:020}.json").exists() and len(commits(path)) >= keys:
            return
        time.sleep(2)
    raise SystemExit(f"gold has no {keys} keys after {PATIENCE:.0f} s")


def commits(path: Path) -> dict[str, float]:
    """Return of each profile the time of the commit that brought its row; version 0 has none."""
    table = DeltaTable(str(path))
    if table.version() == 0:
        return {}
    feed = table.load_cdf(starting_version=1, columns=["profile_id", "_commit_version"])
    found: dict[str, float] = {}
    for batch in feed:
        rows = zip(*(batch.column(n).to_pylist() for n in range(2)), strict=True)
        for profile, version in rows:
            file = path / "_delta_log" / f"{version:020}.json"
            at = file.stat().st_mtime
            found[profile] = min(at, found.get(profile, at))
    return found


def report(found: Mapping[str, list[float]], trigger: str) -> str:
    lines = [
        f"An event every {EVERY} s, trigger {trigger} for each query; {machine()}\n",
        "| source | events | p50 | p95 | p99 | longest |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for kind, seconds in found.items():
        cuts = statistics.quantiles(seconds, n=100)
        shown = " | ".join(f"{cuts[at - 1]:.1f} s" for at in (50, 95, 99))
        lines.append(f"| {kind} | {len(seconds)} | {shown} | {max(seconds):.1f} s |")
    return "\n".join(lines) + "\n"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--events", type=int, default=300, help="of each source")
    words.add_argument("--kinds", nargs="*", choices=[*WAYS], default=[*WAYS])
    words.add_argument("--slices", action="store_true")
    words.add_argument("--write", action="store_true")
    said = words.parse_args()
    if said.slices:
        direct = str(Path(__file__).with_name("direct_slices.py"))
        ways = {SLICES: TIDEMILL, DIRECT: (direct,)}
        found = {way: measure_slices(said.events, runs) for way, runs in ways.items()}
        table = report(found, "1s")
        print(table)
        if said.write:
            write(table, "slices")
        return
    found = {}
    for kind in said.kinds:
        found[kind] = measure(kind, said.events)
        say(f"{kind}: {statistics.median(found[kind]):.1f} s")
    table = report(found, TRIGGER)
    print(table)
    if said.write:
        write(table, "freshness")


if __name__ == "__main__":
    main()
