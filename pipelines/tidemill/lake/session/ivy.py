"""Jars by their exact coordinates, fetched by the Ivy that Spark brings.

    doctor --warm ──► fetch ──Ivy──► <ivy folder>/jars ──► class_path ──► a session's class path

Spark's own `spark.jars.packages` asks for them at every start, and for all that their descriptors
name: versions of Spark's modules that a repository may not have. Here what is named is fetched,
and nothing besides it.
"""

from __future__ import annotations

import importlib.util
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

from tidemill.errors import SetupError
from tidemill.lake.session import local_machine

LIMIT = 300.0  # seconds that a download may take
_NAMES = "[organisation]_[artifact]-[revision].[ext]"  # as Spark's Ivy calls them
_SETTINGS = '<ivy-module version="2.0"><info organisation="tidemill" module="jars"/>{}</ivy-module>'


def class_path(coordinates: Sequence[str], folder: Path | None = None) -> list[Path]:
    """Return where the jars of `group:artifact:version` are, or would be."""
    jars = folder or local_machine.ivy_folder() / "jars"
    parts = [each.split(":") for each in coordinates]
    return [jars / f"{group}_{artifact}-{version}.jar" for group, artifact, version in parts]


def missing(coordinates: Sequence[str]) -> list[str]:
    """Return those whose jars are not here."""
    paths = class_path(coordinates)
    return [one for one, path in zip(coordinates, paths, strict=True) if not path.is_file()]


def fetch(
    coordinates: Sequence[str], folder: Path | None = None, *, transitive: bool = False
) -> None:
    """Fetch the jars into the folder of Spark's own, or into another; with `transitive` all that
    they need too. SetupError where they cannot be had."""
    into = folder or local_machine.ivy_folder() / "jars"
    with tempfile.TemporaryDirectory(prefix="tidemill-") as scratch:
        listing = Path(scratch) / "ivy.xml"
        listing.write_text(_SETTINGS.format(_dependencies(coordinates, transitive)), "utf-8")
        cache = local_machine.ivy_folder() / "cache"
        words = ["-ivy", str(listing), "-cache", str(cache), "-retrieve", str(into / _NAMES)]
        answer = run([*words, "-types", "jar", "bundle"], LIMIT)
    if answer is None or answer.returncode:
        lines = (answer.stdout + answer.stderr).splitlines() if answer else []
        said = next((line.strip(": \t") for line in lines if "not found" in line), "no answer")
        raise SetupError(
            f"jars cannot be fetched: {said}",
            where="jars",
            expected=f"a network, once, or {', '.join(coordinates)} in {into}",
        )


def _dependencies(coordinates: Sequence[str], transitive: bool) -> str:
    parts = [[quoteattr(part) for part in each.split(":")] for each in coordinates]
    needs = "default" if transitive else "master"
    listed = "".join(
        f"<dependency org={group} name={artifact} rev={version} conf='default->{needs}'/>"
        for group, artifact, version in parts
    )
    confs = "<configurations><conf name='default'/></configurations>"
    return f"{confs}<dependencies>{listed}</dependencies>"


def run(words: Sequence[str], limit: float) -> subprocess.CompletedProcess[str] | None:
    """Run Ivy; None where there is no Java or no Ivy, or it does not end in time."""
    spec = importlib.util.find_spec("pyspark")
    folder = Path(spec.origin).parent if spec and spec.origin else Path()
    ivy = next(folder.glob("jars/ivy-*.jar"), None)
    executable, _ = local_machine.java_executable()
    if ivy is None or executable is None:
        return None
    command = [executable, "-jar", str(ivy), *words]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
