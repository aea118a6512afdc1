"""The start of a local session's JVM: its output put away, and what went wrong in a sentence."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemill.errors import DiskFullError, SetupError, TidemillError
from tidemill.lake.session import class_archive, jars, local_machine, sizing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


# Without its native library Hadoop starts a program for each change of a mode (`chmod`) and each
# look at a link (`readlink`). This file system sets modes by Java; Delta and streams commit by it
# instead of by Hadoop's `FileContext`, which cannot be given another.
_STREAMING = "org.apache.spark.sql.execution.streaming"
_LOCAL_FILES = {
    "spark.hadoop.fs.file.impl": "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem",
    "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}
_CLASS_PATH = "spark.driver.extraClassPath"
_LAST = "SPARK_DIST_CLASSPATH"  # whose jars Spark's launcher puts behind its own
_FLAGS = "spark.driver.defaultJavaOptions"


def start(conf: Mapping[str, str], log: Path | None) -> SparkSession:
    """Return a session with these settings and Delta's jars; its JVM writes to `log`, or here."""
    from pyspark.sql import SparkSession

    ivy, packages = Path(conf["spark.jars.ivy"]), _packages(conf)
    known = jars.resolved(ivy, packages)
    remote = "spark.master" not in conf
    builder: Any = SparkSession.builder
    for name, value in {**conf, **_with_jars(conf, packages, known, remote=remote)}.items():
        if value:
            builder = builder.config(name, value)
    behind = "" if known is None or remote else conf.get(_CLASS_PATH, "")
    try:
        with _output_to(log), _behind_spark(behind):
            spark: SparkSession = builder.getOrCreate()
    except Exception as error:
        raise _start_error(log, error, conf) from error
    if known is None and not is_remote(spark):
        jars.record(ivy, packages, spark.sparkContext.getConf().get("spark.jars") or "")
    return spark


def is_remote(spark: SparkSession) -> bool:
    """Return whether a session is of Spark Connect."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def _packages(conf: Mapping[str, str]) -> list[str]:
    """Return the packages to bring: Delta's for this Spark, the one of local files, then those of
    the settings."""
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    more = [name for name in conf.get("spark.jars.packages", "").split(",") if name]
    options: Mapping[str, str] = configure_spark_with_delta_pip(
        SparkSession.Builder(), extra_packages=[local_machine.LOCAL_FILES, *more]
    )._options
    return options["spark.jars.packages"].split(",")


def _with_jars(
    conf: Mapping[str, str], packages: Sequence[str], known: Sequence[Path] | None, *, remote: bool
) -> dict[str, str]:
    """Return the settings that bring the packages: their names, or where their jars are known
    those. On the class path of a JVM that is all there is of Spark they are not copied for its
    tasks, and its class archive can hold their classes; only from there can Spark's own start take
    the file system."""
    if known is None:
        return {"spark.jars.packages": ",".join(packages)}
    if remote:
        named = [name for name in conf.get("spark.jars", "").split(",") if name]
        return {"spark.jars.packages": "", "spark.jars": ",".join([*named, *map(str, known)])}
    flags, ours = conf.get(_FLAGS, ""), jars.beyond_spark(known)
    # A heap that begins small collects hundreds of times more before it has grown. It is not one
    # of the flags that an archive is made for.
    heap = sizing.initial_heap(conf.get("spark.driver.memory", "")) if flags else ""
    return {
        **_LOCAL_FILES,
        "spark.jars.packages": "",
        _CLASS_PATH: ":".join(map(str, ours)),
        _FLAGS: " ".join(filter(None, (flags, heap, class_archive.options(ours, flags)))),
    }


@contextlib.contextmanager
def _behind_spark(class_path: str) -> Iterator[None]:
    """Have jars stand behind Spark's own on the class path of the JVM that is launched: an archive
    fits one that begins as its own does."""
    if not class_path:
        yield
        return
    before = os.environ.get(_LAST)
    os.environ[_LAST] = f"{before}:{class_path}" if before else class_path
    try:
        yield
    finally:
        if before is None:
            del os.environ[_LAST]
        else:
            os.environ[_LAST] = before


def class_archive_of(conf: Mapping[str, str]) -> Path | None:
    """Return where the class archive of a session with these settings is, or would be; None where
    its jars are not here yet."""
    known = jars.resolved(Path(conf["spark.jars.ivy"]), _packages(conf))
    if known is None:
        return None
    return class_archive.path(jars.beyond_spark(known), conf.get(_FLAGS, ""))


@contextlib.contextmanager
def _output_to(log: Path | None) -> Iterator[None]:
    """Point standard output and error at `log` while the JVM is launched: it keeps them, we do not.

    Java names some of its own start errors on standard output, which is for our JSON.
    """
    if log is None:
        yield
        return
    _flush()
    saved = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    try:
        with log.open("ab") as file:
            for descriptor in saved:
                os.dup2(file.fileno(), descriptor)
        yield
    finally:
        _flush()
        for descriptor, copy in saved.items():
            os.dup2(copy, descriptor)
            os.close(copy)


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()


def _start_error(log: Path | None, error: Exception, conf: Mapping[str, str]) -> TidemillError:
    """Return the error that says why Spark did not start, from its log."""
    text = log.read_text(errors="replace") if log else str(error)
    see = f"; Spark's log is {log}" if log else ""
    if "No space left on device" in text or "File too large" in text:
        places = f"{conf['spark.jars.ivy']} or {tempfile.gettempdir()}"
        return DiskFullError(f"the disk of {places} is full; free some space{see}", where="session")
    if "unresolved dependenc" in text.lower() or "Server access error" in text:
        message = (
            f"the Delta jars are not in {conf['spark.jars.ivy']} and cannot be fetched; "
            f"connect to the network once (about 190 MB), or copy that folder here{see}"
        )
        return SetupError(message, where="jars")
    if "heap" in text.lower() or "insufficient memory" in text.lower():
        memory = conf["spark.driver.memory"]
        return SetupError(f"no JVM with {memory} can be started; ask for less{see}", where="memory")
    return SetupError(f"Spark did not start: {_reason(error, text)}{see}", where="session")


def _reason(error: Exception, text: str) -> str:
    """Return the log's first line that names an exception, else the Python error's first line."""
    lines = [line.strip() for line in text.splitlines()]
    named = (line for line in lines if "Exception" in line or line.startswith("Error"))
    return next(named, str(error).splitlines()[0] if str(error) else type(error).__name__)


def write_plain_files(spark: SparkSession) -> None:
    """Have Hadoop write local files without a hidden one that holds a checksum, and ask for none:
    each costs it several processes, to set a mode and to look for links."""
    context: Any = spark.sparkContext
    files = context._jvm.org.apache.hadoop.fs.FileSystem
    local = files.getLocal(context._jsc.hadoopConfiguration())
    local.setWriteChecksum(False)
    local.setVerifyChecksum(False)
