"""Pages in a headless Chromium: what it shows of them, and what it complains of."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
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


QUIET = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
OFFLINE = ("--disable-background-networking",)


class Tab:
    """A page in a browser that somebody uses: keys are pressed, what is there is asked. It speaks
    DevTools' protocol, a JSON text and a zero byte each way."""

    def __init__(self, to: int, back: int):
        """Speak over these two file descriptors."""
        self._to, self._back, self._read, self._count = to, back, b"", 0
        self._session: str | None = None
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]

    def open(self, url: str, width: int = 1200, height: int = 900) -> None:
        """Show a page on a screen of this size."""
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self._ask("Emulation.setDeviceMetricsOverride", **screen)
        self._ask("Page.navigate", url=url)
        self._until_there(url)

    def press(self, key: str, code: int, text: str = "") -> None:
        """Press a key and let it go."""
        pressed = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self._ask("Input.dispatchKeyEvent", type="keyDown", **pressed, text=text)
        self._ask("Input.dispatchKeyEvent", type="keyUp", **pressed)

    def value(self, script: str) -> Any:
        """Return what an expression is in the page."""
        done = self._ask("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def _until_there(self, url: str) -> None:
        ready = f"document.readyState === 'complete' && location.href.startsWith({json.dumps(url)})"
        for _ in range(2_000):
            if self.value(ready):
                return
        raise TimeoutError(url)

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        said: dict[str, Any] = {"id": self._count, "method": method, "params": params}
        if self._session:
            said["sessionId"] = self._session
        os.write(self._to, json.dumps(said).encode() + b"\0")
        while True:
            while b"\0" not in self._read:
                self._read += os.read(self._back, 1 << 16)
            text, _, self._read = self._read.partition(b"\0")
            answer: dict[str, Any] = json.loads(text)
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return dict(answer["result"])


@contextmanager
def tab(profile: Path) -> Iterator[Tab]:
    """Yield a page in a browser of its own, which ends with the block."""
    theirs, to = os.pipe()
    back, ours = os.pipe()
    words = [str(CHROMIUM), *QUIET, *OFFLINE, f"--user-data-dir={profile}"]
    piped = ["bash", "-c", f'exec "$0" "$@" 3<&{theirs} 4>&{ours}']
    browser = subprocess.Popen(
        [*piped, *words, "--remote-debugging-pipe", "--proxy-server=direct://"],
        pass_fds=(theirs, ours),
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs)
    os.close(ours)
    try:
        yield Tab(to, back)
    finally:
        browser.terminate()
        browser.wait(30)
        os.close(to)
        os.close(back)


def _run(*words: object) -> subprocess.CompletedProcess[str]:
    offline = ("--proxy-server=127.0.0.1:9", *OFFLINE)
    return subprocess.run(
        [str(CHROMIUM), *QUIET, *offline, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
