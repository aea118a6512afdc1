"""Pipeline files: what they may say, and what a wrong one is told, with file, line and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.config.pipeline_file import SHIPPED, load, read
from tidemill.errors import DefinitionError, UsageError

SHIPPED_TEXT = (SHIPPED / "engagement.yaml").read_text()


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("clock: event", "clok: event", 4, "unknown word 'clok'; did you mean 'clock'?"),
        ("clock: event", "clock: evnt", 4, "'event' or 'wall', found 'evnt'"),
        ("{land: 30s,", "{lnd: 30s,", 5, "did you mean 'land'"),
        ("land: 30s", "land: soon", 5, "'soon' is no length of time"),
        ("kind: generator", "kind: generater", 3, "generater"),
        ("kind: generator", "kind: generator, sed: 1", 3, "did you mean 'seed'"),
        ("keys:", "kyes:", 11, "did you mean 'keys'"),
        ("- count:", "- cuont:", 16, "unknown aggregate 'cuont'; did you mean 'count'?"),
        ("[1h, 12h, 1d]", "[1h, 90s]", 16, "not a multiple of the bucket"),
        ("[1h, 12h, 1d]", "[]", 16, "takes a list of windows"),
        ("history: 400d", "history: 12h", 2, "history 12h is shorter than 1d"),
        ("pipeline: engagement", "pipeline: a-b", 2, "not an identifier"),
        ("clock: event", "clock: event\nclock: wall", 5, "'clock' stands twice"),
        ("clock: event", "clock: event\nmax_bytes_per_trigger: 12mb", 5, "'12mb' is not a size"),
        ("clock: event", "clock: &a event\nrefresh: *a", 5, "aliases"),
        ("clock: event", "clock: event: wall", 4, "is no YAML: mapping values"),
        ("clock: event", "clock: 2026-02-30", 4, "is no YAML: '2026-02-30' cannot be read: day"),
        (
            "max_files_per_trigger: 1000",
            "max_files_per_trigger: 0",
            7,
            "greater than or equal to 1",
        ),
    ],
)
def test_a_wrong_word(tmp_path: Path, old: str, new: str, line: int, message: str) -> None:
    assert old in SHIPPED_TEXT
    path = written(tmp_path, SHIPPED_TEXT.replace(old, new, 1))
    with pytest.raises(DefinitionError) as caught:
        read(path)
    assert message in str(caught.value)
    assert str(caught.value.where).startswith(f"{path}:{line}")


@pytest.mark.parametrize("text", ["", "just text", "- a\n- b", "a: [", "pipeline: x"])
def test_no_pipeline(tmp_path: Path, text: str) -> None:
    with pytest.raises(DefinitionError):
        read(written(tmp_path, text))


def test_a_file_too_large_and_one_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="too large"):
        read(written(tmp_path, "#" * 300_000))
    with pytest.raises(DefinitionError, match="no such file"):
        load(str(tmp_path / "absent.yaml"))


def test_an_unknown_name() -> None:
    with pytest.raises(DefinitionError, match="did you mean 'engagement'"):
        load("engagment")


def test_the_command_line_may_say_otherwise(tmp_path: Path) -> None:
    changed = load("engagement").overridden({"clock": "wall", "triggers": {"land": "1s"}})
    assert (changed.clock, changed.triggers.land, changed.triggers.clean) == ("wall", "1s", "30s")
    with pytest.raises(UsageError, match="'event' or 'wall'"):
        load("engagement").overridden({"clock": "sun"})


def test_a_command_calls_it_as_its_user_does(tmp_path: Path) -> None:
    file = written(tmp_path, SHIPPED_TEXT)
    mine = load(str(file))
    assert mine.command_name == mine.overridden({"clock": "wall"}).command_name == str(file)
    assert load("engagement").command_name == "engagement"
    other = tmp_path / "other.yaml"
    other.write_text(SHIPPED_TEXT)
    assert read(other) == mine, "a file's name is no word of it"


def test_views_of_one_pipeline_read_the_same_events(tmp_path: Path) -> None:
    second = "  - {name: other, keys: [gti], event_time: event_timestamp, schema: {gti: string}, "
    second += "features: [{count: {}, over: [1h]}]}\n"
    with pytest.raises(DefinitionError, match="another event_time or schema"):
        read(written(tmp_path, SHIPPED_TEXT + second))
