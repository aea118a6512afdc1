"""A real PostgreSQL whose changes Debezium's connector in Kafka Connect brings into Kafka topics.

    psql sessions ──► PostgreSQL ──WAL──► Debezium in Kafka Connect ──► Kafka ──► records as text

Everything runs on 127.0.0.1 in a folder of the test's own and ends with it. PostgreSQL is Debian's
package; the jars are Maven's, 90 MB, kept in ~/.cache/tidemill/change-server.
"""

from __future__ import annotations

import json
import os
import pwd
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tidemill.lake.session import local_machine

JARS = Path.home() / ".cache" / "tidemill" / "change-server"
KAFKA, DEBEZIUM = "4.1.0", "3.3.1.Final"
ARTIFACTS = {
    "connect": [
        *(f"org.apache.kafka:{name}:{KAFKA}" for name in ("connect-runtime", "connect-json")),
        *(f"org.apache.kafka:{name}:{KAFKA}" for name in ("kafka_2.13", "kafka-tools")),
    ],
    "plugins/debezium": [f"io.debezium:debezium-connector-postgres:{DEBEZIUM}"],
}
CLUSTER = "tidemillAAAAAAAAAAAAAA"
TABLE = "customers"
TOPIC = f"shop.public.{TABLE}"
PATIENCE = 90.0
SCHEMA = f"""
CREATE TABLE {TABLE} (
  customer_id TEXT PRIMARY KEY, segment TEXT, credit BIGINT NOT NULL, note TEXT DEFAULT 'x'
);
"""


def missing() -> str | None:
    """What this machine lacks for it; None where it has all."""
    if _postgres("postgres") is None:
        return "PostgreSQL's server is not installed"
    needs = ("mvn", "psql", "setpriv")
    return next((f"{name} is not installed" for name in needs if not shutil.which(name)), None)


def _postgres(program: str) -> str | None:
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
    return str(found[-1]) if found else shutil.which(program)


def jars() -> Path:
    """The folder of the jars, fetched the first time."""
    done = JARS / ".whole"
    if not done.exists():
        shutil.rmtree(JARS, ignore_errors=True)
        for folder, coordinates in ARTIFACTS.items():
            _fetch(JARS / folder, coordinates)
        done.touch()
    return JARS


def _fetch(folder: Path, coordinates: Sequence[str]) -> None:
    folder.mkdir(parents=True)
    each = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
        "</dependency>".format(*one.split(":"))
        for one in coordinates
    )
    pom = folder / "pom.xml"
    pom.write_text(
        "<project><modelVersion>4.0.0</modelVersion><groupId>t</groupId><artifactId>t</artifactId>"
        f"<version>1</version><dependencies>{each}</dependencies></project>"
    )
    copy = ("dependency:copy-dependencies", f"-DoutputDirectory={folder}")
    subprocess.run(["mvn", "-q", "-B", "-f", pom, *copy], check=True)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def until(is_so: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    end = time.monotonic() + patience
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(what)
        time.sleep(0.2)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@dataclass(frozen=True)
class Server:
    """The database, and the topic to which its changes go."""

    folder: Path
    port: int
    broker: int

    def psql(self, sql: str) -> subprocess.Popen[str]:
        """A session that executes statements; each line is one."""
        command = ["psql", "-q", "-v", "ON_ERROR_STOP=1", "-At", *self._to()]
        session = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert session.stdin
        session.stdin.write(sql)
        session.stdin.close()
        return session

    def rows(self, sql: str) -> list[list[str]]:
        command = ["psql", "-At", "-F", "\t", *self._to(), "-c", sql]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [line.split("\t") for line in text.splitlines()]

    def _to(self) -> list[str]:
        return ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "postgres"]

    def records(self, mark: str) -> list[str | None]:
        """Every record of the topic in its order, up to the one that names the mark."""
        command = _java("256m", jars() / "connect" / "*")
        command += ["org.apache.kafka.tools.consumer.ConsoleConsumer", "--topic", TOPIC]
        command += ["--bootstrap-server", f"127.0.0.1:{self.broker}", "--from-beginning"]
        with (self.folder / "consumer.log").open("w") as log:
            consumer = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        records: list[str | None] = []
        try:
            assert consumer.stdout
            for line in consumer.stdout:
                text = line.rstrip("\n")
                records.append(None if text == "null" else text)
                if mark in text:
                    return records
        finally:
            consumer.terminate()
            consumer.wait()
        raise EOFError("the consumer ended before the mark")


def transactions(seed: int, count: int, keys: int) -> str:
    """So many random transactions as SQL: inserts, updates, deletes, changes of keys, several in
    one, some undone. A row that another session holds is waited for; keys of one transaction are
    taken in order, so that none waits in a circle."""
    draw = random.Random(seed)
    lines = []
    for _ in range(count):
        chosen = sorted(draw.sample(range(keys), draw.choice((1, 1, 2, 3))))
        made = " ".join(_statement(draw, number, keys) for number in chosen)
        lines.append(f"BEGIN; {made} {draw.choice(('COMMIT', 'COMMIT', 'COMMIT', 'ROLLBACK'))};")
    return "\n".join(lines) + "\n"


def _statement(draw: random.Random, number: int, keys: int) -> str:
    key, segment = f"'c{number:05d}'", draw.choice(("'basic'", "'gold'", "NULL"))
    credit, fate = draw.randrange(1_000_000), draw.random()
    if fate < 0.15:
        return f"DELETE FROM {TABLE} WHERE customer_id = {key};"
    if fate < 0.25:  # to a key that only this one is ever moved to, and that never comes back
        moved = f"'m{draw.getrandbits(60)}'"
        return f"UPDATE {TABLE} SET customer_id = {moved} WHERE customer_id = {key};"
    values = f"segment = {segment}, credit = {credit}"
    if fate < 0.6:
        return f"UPDATE {TABLE} SET {values} WHERE customer_id = {key};"
    return (
        f"INSERT INTO {TABLE} VALUES ({key}, {segment}, {credit}) "
        f"ON CONFLICT (customer_id) DO UPDATE SET {values};"
    )


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """Yield the server with its table and some rows, the connector behind it."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        port, broker = free_port(), free_port()
        stack.enter_context(_database(folder / "postgres", port))
        stack.enter_context(_kafka(folder, broker))
        server = Server(folder, port, broker)
        first = f"INSERT INTO {TABLE} SELECT 'c' || lpad(n::text, 5, '0'), 'basic', n FROM "
        sql = f"{SCHEMA}{first}generate_series(0, 199, 2) AS n;\n"
        if server.psql(sql).wait():
            raise RuntimeError("the table could not be made")
        stack.enter_context(_connect(folder, server))
        yield server


@contextmanager
def _database(folder: Path, port: int) -> Iterator[None]:
    """PostgreSQL, as its own user where we are root, who may not run it."""
    as_user: list[str] = []
    folder.mkdir()
    if os.getuid() == 0:
        user = pwd.getpwnam("postgres")
        as_user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
        os.chown(folder, user.pw_uid, user.pw_gid)
        for above in folder.parents:
            if above.stat().st_uid == 0 and above != Path("/"):
                above.chmod(above.stat().st_mode | 0o011)
    data = folder / "data"
    initdb, postgres = _postgres("initdb"), _postgres("postgres")
    assert initdb and postgres
    made = [*as_user, initdb, "-D", str(data), "-U", "postgres", "-A", "trust", "--no-sync"]
    subprocess.run(made, check=True, stdout=subprocess.DEVNULL, cwd="/")
    settings = {
        "wal_level": "logical",
        "port": port,
        "listen_addresses": "127.0.0.1",
        "unix_socket_directories": folder,
        "fsync": "off",
        "deadlock_timeout": "200ms",
    }
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    command = [*as_user, postgres, "-D", str(data), *words]
    with _process(command, folder.parent / "postgres.log"):
        until(lambda: listens(port), "PostgreSQL does not listen")
        yield


@contextmanager
def _kafka(folder: Path, port: int) -> Iterator[None]:
    controller = free_port()
    settings = folder / "server.properties"
    settings.write_text(
        f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={folder}/kafka
num.partitions=1
offsets.topic.replication.factor=1
"""
    )
    base = _java("512m", jars() / "connect" / "*")
    form = [*base, "kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", str(settings)]
    subprocess.run(form, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with _process([*base, "kafka.Kafka", str(settings)], folder / "kafka.log"):
        until(lambda: listens(port), "Kafka does not listen")
        yield


@contextmanager
def _connect(folder: Path, server: Server) -> Iterator[None]:
    """Kafka Connect in standalone mode with the connector, which reads the rows that are there."""
    worker, connector = folder / "worker.properties", folder / "connector.json"
    rest = free_port()
    worker.write_text(
        f"""bootstrap.servers=127.0.0.1:{server.broker}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter.schemas.enable=false
offset.storage.file.filename={folder}/offsets
listeners=http://127.0.0.1:{rest}
plugin.path={jars() / "plugins"}
plugin.discovery=only_scan
"""
    )
    config = {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "plugin.name": "pgoutput",
        "database.hostname": "127.0.0.1",
        "database.port": str(server.port),
        "database.user": "postgres",
        "database.password": "none",
        "database.dbname": "postgres",
        "topic.prefix": "shop",
        "table.include.list": f"public.{TABLE}",
    }
    connector.write_text(json.dumps({"name": "shop", "config": config}))
    main = "org.apache.kafka.connect.cli.ConnectStandalone"
    command = [*_java("768m", jars() / "connect" / "*"), main, str(worker), str(connector)]
    with _process(command, folder / "connect.log"):
        slots = "SELECT count(*) FROM pg_replication_slots WHERE active"
        until(lambda: server.rows(slots) == [["1"]], "the connector does not read the log")
        yield


def _java(memory: str, class_path: Path) -> list[str]:
    java, _ = local_machine.java_executable()
    return [java or "java", f"-Xmx{memory}", "-cp", str(class_path)]


@contextmanager
def _process(command: Sequence[str], log: Path) -> Iterator[None]:
    with log.open("w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, cwd="/")
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
