"""A fake Kinesis for tests: its process, streams with records, and the faults that it can have."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from tidemill.sources.kinesis.data_source import KinesisStreamReader
from tidemill.sources.kinesis.read_options import ReadOptions
from tidemill.sources.kinesis.refusals import StreamAddress
from tidemill.sources.kinesis.service import Service, connect

SERVER = Path(__file__).with_name("kinesis_server.py")
REGION = "eu-central-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}


@dataclass(frozen=True)
class FakeKinesis:
    """The server, and how many streams it made."""

    endpoint: str
    client: Any

    def stream(self, name: str, shards: int = 1) -> FakeStream:
        self.client.create_stream(StreamName=name, ShardCount=shards)
        return FakeStream(self, name)

    def fault(self, **words: object) -> None:
        request = urllib.request.Request(f"{self.endpoint}/faults", json.dumps(words).encode())
        urllib.request.urlopen(request, timeout=10).close()


@dataclass(frozen=True)
class FakeStream:
    kinesis: FakeKinesis
    name: str

    @property
    def address(self) -> StreamAddress:
        return StreamAddress(self.name, REGION, self.kinesis.endpoint)

    @property
    def service(self) -> Service:
        return connect(self.address, patience=2)

    def options(self, **words: Any) -> ReadOptions:
        return ReadOptions(self.address, **words)

    def reader(self, **words: Any) -> KinesisStreamReader:
        return KinesisStreamReader(self.options(**words))

    def put(self, payloads: Iterable[str | bytes]) -> None:
        """Put records, each by a key of its own, so that they come to all shards."""
        data = [one if isinstance(one, bytes) else one.encode() for one in payloads]
        for first in range(0, len(data), 500):
            records = [
                {"Data": one, "PartitionKey": str(number)}
                for number, one in enumerate(data[first : first + 500], first)
            ]
            self.kinesis.client.put_records(StreamName=self.name, Records=records)

    def split(self, shard: int) -> None:
        one = self._shards()[shard]["HashKeyRange"]
        middle = (int(one["StartingHashKey"]) + int(one["EndingHashKey"])) // 2
        self.kinesis.client.split_shard(
            StreamName=self.name, ShardToSplit=name_of(shard), NewStartingHashKey=str(middle)
        )

    def merge(self, shard: int, adjacent: int) -> None:
        self.kinesis.client.merge_shards(
            StreamName=self.name,
            ShardToMerge=name_of(shard),
            AdjacentShardToMerge=name_of(adjacent),
        )

    def _shards(self) -> list[dict[str, Any]]:
        shards: list[dict[str, Any]] = self.kinesis.client.list_shards(StreamName=self.name)[
            "Shards"
        ]
        return shards


def name_of(shard: int) -> str:
    return f"shardId-{shard:012}"


@contextmanager
def serving(folder: Path) -> Iterator[FakeKinesis]:
    """Yield a server that runs until the block ends."""
    port_file = folder / "port"
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, SERVER, port_file], stdout=log, stderr=log)
    try:
        while not port_file.exists():
            assert process.poll() is None, (folder / "server.log").read_text()
            time.sleep(0.05)
        endpoint = f"http://127.0.0.1:{port_file.read_text()}"
        yield FakeKinesis(endpoint, boto3.client("kinesis", REGION, endpoint_url=endpoint))
    finally:
        process.terminate()
        process.wait(10)
