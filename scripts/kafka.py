"""Start a Kafka broker on this machine, for a try and for the tests: `make kafka`.

    python scripts/kafka.py [--port 9092] [--folder DIR] [--sasl-port PORT] [--tls-port PORT]

One node in KRaft mode that listens on 127.0.0.1 alone and keeps what it has in a folder. Its jars
are fetched the first time (40 MB), into a class path of their own: they are not Spark's. It says
`ready` on standard output when it takes connections, and ends with Ctrl-C or SIGTERM.

With `--sasl-port` it also listens there for the user `tidemill` with the password of
$TIDEMILL_KAFKA_PASSWORD (SASL_PLAINTEXT, PLAIN). With `--tls-port` it listens there for the same
user by SASL_SSL and SCRAM-SHA-512, and one port further by SSL for whoever shows the certificate of
the folder's `tls.p12`, which `trust.p12` holds; both files are made here and have that password.
Whoever comes without a name may do all, users what no rule denies them.
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
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,\
SASL_SSL:SASL_SSL,SSL:SSL
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
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
listener.name.sasl_plaintext.sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required \
username="tidemill" password="{password}" user_tidemill="{password}";
"""
TLS = """\
listener.name.sasl_ssl.sasl.enabled.mechanisms=SCRAM-SHA-512
listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
ssl.keystore.type=PKCS12
ssl.keystore.location={folder}/tls.p12
ssl.keystore.password={password}
ssl.key.password={password}
ssl.truststore.type=PKCS12
ssl.truststore.location={folder}/trust.p12
ssl.truststore.password={password}
listener.name.ssl.ssl.client.auth=required
"""
PASSWORD = "TIDEMILL_KAFKA_PASSWORD"


def main() -> int:
    """Start the broker, wait for its end; return its exit code, 2 where it cannot start."""
    words = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words.add_argument("--port", type=int, default=9092)
    words.add_argument("--folder", type=Path, default=Path("kafka-data"))
    words.add_argument("--sasl-port", type=int)
    words.add_argument("--tls-port", type=int)
    said = words.parse_args()
    if (said.sasl_port or said.tls_port) and len(os.environ.get(PASSWORD, "")) < 6:
        print(f"error: ${PASSWORD} is not a password of six characters or more", file=sys.stderr)
        return 2
    try:
        class_path = fetched()
    except TidemillError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code
    said.folder.mkdir(parents=True, exist_ok=True)
    log = said.folder / "broker.log"
    settings = properties(said.folder, said.port, said.sasl_port, said.tls_port)
    if said.tls_port:
        certify(settings.parent)
    broker = start(class_path, settings, log, user=bool(said.tls_port))
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


def properties(folder: Path, port: int, sasl_port: int | None, tls_port: int | None) -> Path:
    """Write the broker's settings; return their file."""
    ports = {"PLAINTEXT": port, "SASL_PLAINTEXT": sasl_port, "SASL_SSL": tls_port}
    ports["SSL"] = tls_port and tls_port + 1
    listeners = ",".join(f"{name}://127.0.0.1:{at}" for name, at in ports.items() if at)
    absolute, password = folder.absolute(), os.environ.get(PASSWORD)
    text = PROPERTIES.format(listeners=listeners, controller=free_port(), folder=absolute)
    if sasl_port:
        text += SASL.format(password=password)
    if tls_port:
        text += TLS.format(password=password, folder=absolute)
    file = absolute / "server.properties"
    file.touch(0o600)
    file.chmod(0o600)  # it may be there from a run before
    file.write_text(text, encoding="utf-8")
    return file


def certify(folder: Path) -> None:
    """Make a key with a certificate of its own for 127.0.0.1, and a file that trusts it."""
    key, trusted, certificate = (folder / name for name in ("tls.p12", "trust.p12", "tls.pem"))
    if trusted.exists():
        return
    java, _ = local_machine.java_executable()
    keytool = Path(shutil.which(java or "java") or "java").resolve().with_name("keytool")
    word = ["-storetype", "PKCS12", "-storepass:env", PASSWORD, "-alias", "broker"]
    pair = ["-genkeypair", "-keyalg", "EC", "-groupname", "secp256r1", "-validity", "3650"]
    pair += ["-dname", "CN=127.0.0.1", "-ext", "SAN=IP:127.0.0.1,DNS:localhost"]
    for words in (
        [*pair, "-keystore", key, *word],
        ["-exportcert", "-rfc", "-file", certificate, "-keystore", key, *word],
        ["-importcert", "-noprompt", "-file", certificate, "-keystore", trusted, *word],
    ):
        subprocess.run([keytool, *words], check=True, capture_output=True)


def start(
    class_path: str, settings: Path, log: Path, *, user: bool = False
) -> subprocess.Popen[bytes]:
    """Format the folder unless it is, with the user for SCRAM, and start the broker."""
    java, _ = local_machine.java_executable()
    base = [java or "java", "-Xmx512m", "-cp", class_path]
    with log.open("ab") as out:
        form = [*base, "kafka.tools.StorageTool", "format", "--ignore-formatted"]
        form += ["-t", CLUSTER, "-c", str(settings)]
        if user:
            form += ["-S", f"SCRAM-SHA-512=[name=tidemill,password={os.environ[PASSWORD]}]"]
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
