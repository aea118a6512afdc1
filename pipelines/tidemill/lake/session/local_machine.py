"""What a local session needs from the machine: Java, packages, jars.

Nothing here imports pyspark, so that a missing part is named before Spark fails on it.
Run as a file, before anything is installed, it checks Java alone.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

JAVA = 17
SPARK = "4.2"
DELTA = "4.4"
LOCAL_FILES = "com.globalmentor:hadoop-bare-naked-local-fs:0.1.0"  # without dependencies, Apache 2
INSTALL_JAVA = (
    f"install it with `apt-get install openjdk-{JAVA}-jre-headless` (Debian, Ubuntu), "
    f"`brew install openjdk@{JAVA}` (macOS) or `conda install openjdk={JAVA}`, "
    "or point JAVA_HOME at one"
)
INSTALL_LOCAL = "pip install 'tidemill[local]'"


@dataclass(frozen=True)
class Check:
    """One requirement: what was found, what was expected, and the cure when `ok` is false."""

    name: str
    ok: bool
    found: str
    expected: str
    fix: str = ""

    @property
    def sentence(self) -> str:
        """What was found, and the cure."""
        return f"{self.found}; {self.fix}" if self.fix else self.found


def java() -> Check:
    """Return the check of the Java that Spark would start: JAVA_HOME's, else PATH's."""
    expected = f"Java {JAVA} or newer"
    executable, description = java_executable()
    if executable is None:
        return Check("java", False, description, expected, INSTALL_JAVA)
    version = _java_version(executable)
    if version is None:
        return Check("java", False, f"{executable} does not run", expected, INSTALL_JAVA)
    ok = _java_major(version) >= JAVA
    description = f"Java {version} ({executable})"
    return Check("java", ok, description, expected, "" if ok else INSTALL_JAVA)


def java_executable() -> tuple[str | None, str]:
    """Return the path that Spark's own launcher would take, or None, and why there is none."""
    home = os.environ.get("JAVA_HOME")
    if not home:
        return shutil.which("java"), "no java on PATH, and JAVA_HOME is not set"
    return shutil.which("java", path=f"{home}/bin"), f"no bin/java in JAVA_HOME ({home})"


def _java_version(executable: str) -> str | None:
    try:
        answer = subprocess.run(
            [executable, "-version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "([^"]+)"', answer.stderr + answer.stdout)
    return match[1] if match and answer.returncode == 0 else None


def _java_major(version: str) -> int:
    """Return 17 for `17.0.15`, 8 for `1.8.0_392`, 25 for `25-ea`."""
    match = re.match(r"(?:1\.)?(\d+)", version)
    return int(match[1]) if match else 0


def importable() -> Check:
    """Return the check that Spark and Delta can be imported, wherever a platform has them from."""
    missing = [name for name in ("pyspark", "delta") if importlib.util.find_spec(name) is None]
    description = f"no Python package {' and '.join(missing)}" if missing else "pyspark, delta"
    return Check(
        "spark", not missing, description, "Spark with Delta", INSTALL_LOCAL if missing else ""
    )


def spark() -> Check:
    """Return the check of pyspark, and of SPARK_HOME, which pyspark prefers to its own jars."""
    check = package("pyspark", f"{SPARK}.")
    home = os.environ.get("SPARK_HOME")
    jar = f"jars/spark-core_2.13-{check.found}.jar"
    if not check.ok or not home or (Path(home) / jar).exists():
        return check
    description = f"SPARK_HOME is {home}, which is not Spark {check.found}"
    return Check("pyspark", False, description, check.expected, "unset SPARK_HOME")


def delta() -> Check:
    """Return the check of the delta-spark package, whose version selects the jars."""
    return package("delta-spark", f"{DELTA}.")


def package(name: str, prefix: str) -> Check:
    """Return the check that a distribution is installed in a version that starts with `prefix`."""
    version, expected = installed(name), f"{name} {prefix}x"
    if version is None:
        return Check(name, False, "not installed", expected, INSTALL_LOCAL)
    ok = version.startswith(prefix)
    return Check(name, ok, version, expected, "" if ok else INSTALL_LOCAL)


def installed(name: str) -> str | None:
    """Return the installed version of a distribution, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def spark_jars() -> Path:
    """Return the folder of Spark's own jars: SPARK_HOME's, else the installed package's."""
    spec = importlib.util.find_spec("pyspark")
    package_folder = Path(spec.origin).parent if spec and spec.origin else Path()
    return Path(os.environ.get("SPARK_HOME") or package_folder) / "jars"


def ivy_folder() -> Path:
    """Return the folder in which Spark keeps downloaded jars, under the user's home folder."""
    return Path.home() / ".ivy2.5.2"


if __name__ == "__main__":
    check = java()
    if not check.ok:
        sys.exit(f"setup: {check.expected} is needed, but found {check.sentence}")
