"""Feast's feature server over the same values: an environment of its own, its store in the same
Redis.

    python benchmarks/peers/feast_serving.py REPOSITORY PORT KEYS       (Feast's Python)

Applies one feature view of nine features and writes KEYS rows, those of benchmarks/serving.py; then
`feast serve` answers `POST /get-online-features`.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

REQUIRED = ("feast[redis]==0.67.0",)
NAMES = [f"{a}_count_{w}" for w in ("1d", "12h", "1h") for a in ("select", "highlight", "view")]
REPOSITORY = """project: engagement
registry: registry.db
provider: local
online_store: {{type: redis, connection_string: "127.0.0.1:{port}"}}
offline_store: {{type: file}}
entity_key_serialization_version: 3
"""


@contextmanager
def running(wanted: bool, folder: Path, port: int, keys: int) -> Iterator[int | None]:
    """Yield the port of Feast's server, None where it is not wanted."""
    if not wanted:
        yield None
        return
    from peers.peer import environment

    python, repository = environment("feast-serving", REQUIRED), folder / "feast"
    repository.mkdir()
    (repository / "feature_store.yaml").write_text(REPOSITORY.format(port=port))
    quiet = {**os.environ, "FEAST_USAGE": "False", "PYTHONPATH": ""}
    fill = [python, __file__, repository, str(port), str(keys)]
    subprocess.run(fill, check=True, env=quiet)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        own = free.getsockname()[1]
    command = [python.with_name("feast"), "-c", repository, "serve", "--port", str(own)]
    # By default a worker ends after 1,000 requests, and its connections with it.
    options = ["--host", "127.0.0.1", "--no-access-log", "--max-requests", "0"]
    options += ["--max-requests-jitter", "0"]
    server = subprocess.Popen([*command, *options], env=quiet, start_new_session=True)
    try:
        _listening(own, server)
        yield own
    finally:
        server.terminate()
        server.wait()


def _listening(port: int, server: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert server.poll() is None, "Feast ended"
            assert time.monotonic() < deadline, "Feast does not listen"
            time.sleep(0.2)


def fill(repository: str, keys: int) -> None:
    """Declare the view, and write its rows."""
    import pandas as pd
    from feast import Entity, FeatureStore, FeatureView, Field, FileSource, ValueType
    from feast.types import Int64

    store = FeatureStore(repo_path=repository)
    numbers = range(keys)
    rows = {name: [n * (place + 7) % 900 for n in numbers] for place, name in enumerate(NAMES)}
    frame = pd.DataFrame(
        {
            "profile_id": [f"profile-{n}" for n in numbers],
            "gti": [f"title-{n % 997}" for n in numbers],
            "at": pd.Timestamp.now(tz="UTC"),
            **rows,
        }
    )
    path = f"{repository}/rows.parquet"
    frame.head(1).to_parquet(path)
    entities = [
        Entity(name=name, join_keys=[name], value_type=ValueType.STRING)
        for name in ("profile_id", "gti")
    ]
    view = FeatureView(
        name="engagement",
        entities=entities,
        schema=[Field(name=name, dtype=Int64) for name in NAMES],
        source=FileSource(path=path, timestamp_field="at"),
        online=True,
    )
    store.apply([*entities, view])
    for start in range(0, keys, 20_000):
        store.write_to_online_store("engagement", df=frame.iloc[start : start + 20_000])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("repository")
    parser.add_argument("port", type=int)
    parser.add_argument("keys", type=int)
    said = parser.parse_args()
    fill(said.repository, said.keys)


if __name__ == "__main__":
    sys.exit(main())
