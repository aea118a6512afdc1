"""Pages in a headless Chromium: what it shows of them, and what it complains of."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# A page that shows the report in a frame as wide as a screen, which a window cannot be below 500
# pixels, and writes what it measures into the document, for --dump-dom.
MEASURE = """<!doctype html><body style="margin:0"><iframe width="{width}" height="{height}"
 style="border:0" srcdoc="{page}"></iframe><script>
const errors = [];
const MARKS = ["[aria-roledescription=bar]", "[aria-roledescription=point]", ".mark-line path"];
const frame = document.querySelector("iframe");
frame.contentWindow.addEventListener("error", event => errors.push(event.message));
window.addEventListener("error", event => errors.push(event.message));
window.addEventListener("load", () => {{
  const inner = frame.contentDocument, page = inner.documentElement;
  const wide = svg => svg.getBoundingClientRect().width;
  const marks = svg => svg.querySelectorAll(MARKS.join()).length;
  const found = {{
    plots: [...inner.querySelectorAll("svg")].filter(wide)
      .map(svg => [svg.getAttribute("aria-label"), marks(svg), wide(svg)]),
    over: page.scrollWidth - page.clientWidth,
    width: page.clientWidth,
    ink: frame.contentWindow.getComputedStyle(inner.body).color,
    requests: frame.contentWindow.performance.getEntriesByType("resource").map(one => one.name),
    errors,
  }};
  document.body.setAttribute("data-found", JSON.stringify(found));
}});
</script></body>
"""


def framed(text: str, width: int, height: int, folder: Path) -> Path:
    """A page that shows this one in a frame of a screen's size, and measures it."""
    path = folder / "framed.html"
    path.write_text(MEASURE.format(width=width, height=height, page=escape(text)))
    return path


def measured(framed: Path, *words: object) -> dict[str, Any]:
    """What a framed page measured of the one in it."""
    dom = chromium(*words, "--dump-dom", framed.as_uri())
    found: dict[str, Any] = json.loads(unescape(re.findall(r'data-found="([^"]*)"', dom)[0]))
    return found


def complaints(url: str, *words: object) -> tuple[str, list[str]]:
    """A page's document as it ends, and what the browser's console says of it."""
    done = _run("--enable-logging=stderr", *words, "--dump-dom", url)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


def chromium(*words: object) -> str:
    """What a headless Chromium without a network prints."""
    return _run(*words).stdout


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    quiet = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    offline = ("--proxy-server=127.0.0.1:9", "--disable-background-networking")
    return subprocess.run(
        [str(CHROMIUM), *quiet, *offline, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
