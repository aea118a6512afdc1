"""Start a Kafka broker on this machine, for a try and for the tests: `make kafka`.

    python scripts/kafka.py [--port 9092] [--folder DIR] [--sasl-port PORT]

One node in KRaft mode that listens on 127.0.0.1 alone and keeps what it has in a folder. Its jars
are fetched the first time (40 MB), into a class path of their own: they are not Spark's. It says
`ready` on standard output when it takes connections, and ends with Ctrl-C or SIGTERM.

With `--sasl-port` it also listens there for the user `tidemill` with the password of
$TIDEMILL_KAFKA_PASSWORD.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tidemill.errors import TidemillError
from tidemill.lake.session import ivy, local_machine

BROKER = ["org.apache.kafka:kafka_2.13:4.1.0", "org.slf4j:slf4j-simple:1.7.36"]
JARS = local_machine.ivy_folder() / "kafka-broker"
CLUSTER = "tidemillAAAAAAAAAAAAAA"
PATIENCE = 60.0
PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={listeners}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={folder}/log
num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
auto.create.topics.enable=false
message.max.bytes=16777216
"""
SASL = """\
sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required \
username="tidemill" password="{password}" user_tidemill="{password}";
"""


def main() -> int:
    """Start the broker, wait for its end; return its exit code, 2 where it cannot start."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--port", type=int, default=9092)
    words.add_argument("--folder", type=Path, default=Path("kafka-data"))
    words.add_argument("--sasl-port", type=int)
    said = words.parse_args()
    try:
        class_path = fetched()
    except TidemillError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    said.folder.mkdir(parents=True, exist_ok=True)
    log = said.folder / "broker.log"
    broker = start(class_path, properties(said.folder, said.port, said.sasl_port), log)
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, lambda *_: broker.terminate())
    if not listens(said.port, broker):
        broker.kill()
        print(f"error: the broker did not start; its log is {log}", file=sys.stderr)
        return 2
    print(f"ready: 127.0.0.1:{said.port}, data and log in {said.folder}", flush=True)
    ended = broker.wait()
    return 0 if ended in (0, -signal.SIGTERM, 128 + signal.SIGTERM) else 3


def fetched() -> str:
    """Return the broker's class path, its jars fetched where they are not here."""
    done = JARS / ".whole"
    if not done.exists():
        print("fetching the broker's jars (40 MB, once)", file=sys.stderr)
        shutil.rmtree(JARS, ignore_errors=True)
        ivy.fetch(BROKER, JARS, transitive=True)
        done.touch()
    return f"{JARS}/*"


def properties(folder: Path, port: int, sasl_port: int | None) -> Path:
    """Write the broker's settings; return their file."""
    listeners = f"PLAINTEXT://127.0.0.1:{port}"
    if sasl_port:
        listeners += f",SASL_PLAINTEXT://127.0.0.1:{sasl_port}"
    absolute = folder.absolute()
    text = PROPERTIES.format(listeners=listeners, controller=free_port(), folder=absolute)
    if sasl_port:
        text += SASL.format(password=os.environ["TIDEMILL_KAFKA_PASSWORD"])
    file = absolute / "server.properties"
    file.write_text(text, encoding="utf-8")
    file.chmod(0o600)
    return file


def start(class_path: str, settings: Path, log: Path) -> subprocess.Popen[bytes]:
    """Format the folder unless it is, and start the broker."""
    java, _ = local_machine.java_executable()
    base = [java or "java", "-Xmx512m", "-cp", class_path]
    with log.open("ab") as out:
        form = [*base, "kafka.tools.StorageTool", "format", "--ignore-formatted"]
        form += ["-t", CLUSTER, "-c", str(settings)]
        subprocess.run(form, stdout=out, stderr=out, check=False)
        command = [*base, "kafka.Kafka", str(settings)]
        return subprocess.Popen(command, stdout=out, stderr=out)


def listens(port: int, broker: subprocess.Popen[bytes]) -> bool:
    """Wait until somebody listens there; return whether, False when the broker ended."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and broker.poll() is None:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        time.sleep(0.1)
    return False


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
