"""moto's Kinesis as a process on 127.0.0.1, with what a real one does and moto 5.2 does not.

    python kinesis_server.py FILE      writes the port into FILE when it listens

As the service's reference says: sequence numbers have 56 digits; after a split or a merge the
records stay in the closed shards, new ones go to open ones, and GetRecords at the end of a closed
shard has no next iterator; MillisBehindLatest is the age of what is still to be read. On top,
faults that a test asks for at /faults: so many calls that are throttled or meet an expired
iterator, records that retention removed, shards that are no longer listed.
"""

from __future__ import annotations

import json
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from moto.core.utils import unix_time, utcnow
from moto.kinesis import models
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

FIRST = 49590338271490256608559692538361571095921575989136588898
FAULTS = {"throttle": 0, "expire": 0}
TYPES = {
    "throttle": "ProvisionedThroughputExceededException",
    "expire": "ExpiredIteratorException",
}


def put_record(shard: models.Shard, key: str, data: str, explicit: str) -> str:
    shard.count = getattr(shard, "count", 0) + 1
    number = FIRST + (shard._shard_id << 64) + shard.count
    shard.records[number] = models.Record(key, data, number, explicit)
    return str(number)


def shard_for_key(stream: models.Stream, key: str, explicit: str) -> models.Shard:
    number = int(explicit) if explicit else int(models.md5_hash(key.encode()).hexdigest(), 16)
    open_shards = (shard for shard in stream.shards.values() if shard.is_open)
    return next(one for one in open_shards if one.starting_hash <= number <= one.ending_hash)


def split_shard(stream: models.Stream, name: str, first_hash: str) -> None:
    shard = stream.shards[name]
    shard.is_open, middle = False, int(first_hash)
    _add(stream, shard.starting_hash, middle - 1, parent=name)
    _add(stream, middle, shard.ending_hash, parent=name)


def merge_shards(stream: models.Stream, name: str, adjacent: str) -> None:
    first, second = stream.shards[name], stream.shards[adjacent]
    first.is_open = second.is_open = False
    _add(stream, first.starting_hash, second.ending_hash, parent=name, adjacent_parent=adjacent)


def _add(stream: models.Stream, first: int, last: int, **parents: str) -> None:
    number = max(shard._shard_id for shard in stream.shards.values()) + 1
    shard = models.Shard(number, first, last, **parents)
    stream.shards[shard.shard_id] = shard


def get_records(
    backend: models.KinesisBackend, stream_arn: str | None, shard_iterator: str, limit: int | None
) -> tuple[str | None, list[models.Record], int]:
    name, shard_id, after = models.decompose_shard_iterator(shard_iterator)
    shard = backend.describe_stream(stream_arn, name).get_shard(shard_id)
    left = [record for number, record in list(shard.records.items()) if number > int(after)]
    page, rest = left[:limit], left[limit or len(left) :]
    behind = int((unix_time(utcnow()) - rest[0].created_at) * 1000) + 1 if rest else 0
    last = page[-1].sequence_number if page else int(after)
    is_over = not shard.is_open and not rest
    return None if is_over else models.compose_shard_iterator(name, shard, last), page, behind


def faulty(application: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """The server that answers as the faults say, and takes them in."""

    def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        if environ["PATH_INFO"] == "/faults":
            body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
            _set(json.loads(body))
            start("200 OK", [("Content-Type", "application/json")])
            return [json.dumps(FAULTS).encode()]
        if environ.get("HTTP_X_AMZ_TARGET", "").endswith(".GetRecords"):
            for fault, left in FAULTS.items():
                if left:
                    FAULTS[fault] -= 1
                    start("400 Bad Request", [("Content-Type", "application/x-amz-json-1.1")])
                    return [json.dumps({"__type": TYPES[fault], "message": fault}).encode()]
        return application(environ, start)

    return answer


def _set(words: dict[str, Any]) -> None:
    """{"throttle": 3}, {"trim": [stream, shard, records]} or {"unlist": [stream, shard]}."""
    for name, value in words.items():
        if name in FAULTS:
            FAULTS[name] = value
            continue
        (streams,) = (one.streams for one in _backends() if value[0] in one.streams)
        shards = streams[value[0]].shards
        if name == "unlist":
            del shards[value[1]]
        if name == "trim":
            records = list(shards[value[1]].records.items())[value[2] :]
            shards[value[1]].records = OrderedDict(records)


def _backends() -> list[models.KinesisBackend]:
    return [one for account in models.kinesis_backends.values() for one in account.values()]


def main(port_file: Path) -> None:
    models.Shard.put_record = put_record
    models.Stream.get_shard_for_key = shard_for_key
    models.Stream.split_shard = split_shard
    models.Stream.merge_shards = merge_shards
    models.KinesisBackend.get_records = get_records
    application = faulty(DomainDispatcherApplication(create_backend_app))
    server = make_server("127.0.0.1", 0, application, threaded=True)
    new = port_file.with_suffix(".new")
    new.write_text(str(server.port))
    new.replace(port_file)  # whoever reads it finds a whole number
    server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
