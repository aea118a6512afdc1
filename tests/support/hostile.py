"""Values that try to be markup: in a page, in a terminal, in a file's name."""

from __future__ import annotations

from pathlib import Path

from command_line import call
from lakes import Event, at
from runs import Small, records_of, write_file

EVIL = "document.documentElement.dataset.evil=1"  # what a script of theirs would do to a page
SCRIPT = f"</script><script>{EVIL};alert(1)</script>"
IMAGE = f"<img src=x onerror=\"{EVIL};alert('1')\">"
STYLED = "[/b][red]x[/red] :warning: $pipeline %s {0}"
BIDI = "pay\u202egnp.exe\u2066"  # shown as payexe.png where it is obeyed
PAYLOAD = '{"a": \x1b[2J\x1b]0;title\x07\x9b31m</script><script>' + EVIL + "</script>"
FILE = f"[red]<img src=x onerror={EVIL}>\x1b[31m\u202e.jsonl"
# Characters that a terminal obeys; a line break ends our own lines.
OBEYED = {chr(n) for n in (*range(10), *range(11, 32), *range(127, 160))} | {*"\u202e\u2066"}


def lake_of(folder: Path) -> Small:
    """A lake of hostile keys, a refused payload and a hostile file name, made by `run --once`."""
    events: list[Event] = [
        ("a1", SCRIPT, IMAGE, "view", at("11:00")),
        ("a2", IMAGE, STYLED, "view", at("11:10")),
        ("a3", STYLED, BIDI, "select", at("11:20")),
        ("a4", BIDI, SCRIPT, "view", at("11:30")),
    ]
    records = records_of(events, [PAYLOAD])
    root, files = folder / "[b]lake <i>", folder / "input"
    write_file(files, FILE, records)
    words = ("--source", "files", "--input", files, "--once", "--root", root)
    answer = call("run", "engagement", *words, "--json")
    assert answer.code == 0, answer
    return Small(root, files, events, records, answer.json)
