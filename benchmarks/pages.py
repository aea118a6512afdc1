"""How long the pages of `tidemill ui` take, in a browser, on the demo's lake.

    demo's lake ──tidemill ui──► headless Chromium ──► each page 6 times: from the click to the end

The first time of each page is told apart: it is of a process that has just started. Chromium, the
server and DuckDB share the cores.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

from deltalake import DeltaTable
from measuring import machine, say, temporary, write

sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))
from browser import tab

ROUNDS = 6
PLAIN = ("/", "/views/engagement", "/batches", "/quality", "/quarantine", "/files", "/online")
TOOK = "performance.getEntriesByType('navigation')[0].duration"


def paths_of(root: Path) -> list[str]:
    """Return the paths, a key's page among them."""
    rows = DeltaTable(str(root / "engagement_features")).to_pyarrow_dataset()
    key = rows.head(1, columns=["profile_id", "gti"]).to_pylist()[0]
    return [*PLAIN, f"/views/engagement/key?{urlencode(key)}"]


def measure(root: Path, folder: Path) -> dict[str, list[float]]:
    """Return the milliseconds of each page's loads."""
    command = [sys.executable, "-m", "tidemill.cli", "ui", "engagement", "--port", "0"]
    server = subprocess.Popen([*command, "--root", str(root)], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        (url,) = re.findall(r"http://\S+?(?=;)", server.stdout.readline())
        found: dict[str, list[float]] = {}
        with tab(folder / "profile") as shown:
            for path in paths_of(root):
                for _ in range(ROUNDS):
                    shown.open(f"{url}{path}")
                    found.setdefault(path.partition("?")[0], []).append(shown.value(TOOK))
                    time.sleep(0.2)
                say(f"{path}: {median(found[path.partition('?')[0]]):.0f} ms")
        return found
    finally:
        server.terminate()
        server.wait(30)


def report(found: Mapping[str, Sequence[float]]) -> str:
    """Return the table."""
    lines = [
        f"{ROUNDS} loads of each page; {machine()}\n",
        "| page | first | median of the others | longest of them |",
        "|---|---:|---:|---:|",
    ]
    for path, (first, *others) in found.items():
        lines.append(
            f"| `{path}` | {first:.0f} ms | {median(others):.0f} ms | {max(others):.0f} ms |"
        )
    slowest = max(max(others) for _, *others in found.values())
    met = "met" if slowest < 1000 else "missed"
    lines.append(f"\nUnder 1 s each: {met}.")
    return "\n".join(lines) + "\n"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--root", type=Path, help="a lake that `tidemill demo` made")
    words.add_argument("--write", action="store_true")
    said = words.parse_args()
    with temporary("pages") as folder:
        root = said.root or folder / "lake"
        if not said.root:
            command = [sys.executable, "-m", "tidemill.cli", "demo", "--rate", "60"]
            subprocess.run([*command, "--root", str(root)], check=True, stdout=sys.stderr)
        table = report(measure(root, folder))
    print(table)
    if said.write:
        write(table, "pages")


if __name__ == "__main__":
    main()
