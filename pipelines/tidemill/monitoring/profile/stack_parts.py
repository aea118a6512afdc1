"""What a thread of the driver is at, told from the frames of its stack.

    frames ──parts_of──► ["python", "planning", "snapshot", "jobs"] ──part_of──► "snapshot"
    innermost first       outermost first, as they called each other

A thread that waits for a Spark job in order to read a Delta log is at `snapshot`, not at `jobs`: a
job belongs to the innermost part that is not itself a query's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

OTHER = "other"
JOBS = "jobs"
PYTHON = "python"
PARTS = {
    "offsets": "what the source has, and which of it makes a batch",
    "planning": "Spark's analysis, optimization and planning of statements",
    "compiling": "Java made from plans, and its compilation",
    JOBS: "Spark jobs that read and compute",
    "snapshot": "Delta's log: a table's state, and which of its files to read",
    "write": "jobs that write files",
    "commit": "Delta's commits and their checks",
    "checkpoint": "the stream's checkpoint, and Delta's",
    PYTHON: "Tidemill's own Python, and the way between it and the JVM",
    OTHER: "anything else",
}
_PLANS = "(lazy)?(analyzed|optimizedplan|executedplan|sparkplan)"
# The first that fits a frame names it; `Class.method` of the frame, without packages' versions.
_MARKS = (
    (
        "checkpoint",
        r"streaming\.checkpointing\.|HDFSMetadataLog|OffsetSeqLog|CommitLog|"
        r"CheckpointFileManager|\.markMicroBatch|sql\.delta\.Checkpoints",
    ),
    ("offsets", r"\.constructNextBatch|\.latestOffset|sql\.delta\.sources\.DeltaSource"),
    ("commit", r"sql\.delta\.OptimisticTransaction\w*\.(\$anonfun\$)?(\w*commit\w*)"),
    ("write", r"FileFormatWriter|delta\.files\.TransactionalWrite"),
    (
        "snapshot",
        r"sql\.delta\.Snapshot|sql\.delta\.DeltaLog\$?\.(?!\S*transaction|record|withstatus)|"
        r"sql\.delta\.stats\.(DataSkipping|PrepareDelta)",
    ),
    ("compiling", r"codegen\.CodeGenerator|org\.codehaus\."),
    (
        "planning",
        r"sql\.catalyst\.(rules|parser|analysis|optimizer|planning|encoders)\.|"
        rf"execution\.QueryExecution\.(\$anonfun\$)?{_PLANS}|execution\.QueryPlanner",
    ),
    (
        JOBS,
        r"scheduler\.DAGScheduler|SparkContext\.(runJob|submitJob)|execution\.SparkPlan\.|"
        r"sql\.execution\.(?!command)[a-z.]*\w+Exec\.",
    ),
    (PYTHON, r"^py4j\."),
)
_PATTERNS = [(name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _MARKS]
_OWN_JOBS = frozenset({"offsets", "snapshot", "write", "commit", "checkpoint"})
_LOADED_BY = re.compile(r"^(?:[^/(]*/)*")  # app//, java.base@17.0.15/


def frames_of(text: str) -> list[str]:
    """Return the frames, innermost first, of a stack as Scala prints the array of its elements:
    `Array(app//a.B.c(File.java:1), ...)`; empty for a thread that has none."""
    inner = text.removeprefix("Array(").removesuffix(")")
    return inner.split(", ") if inner else []


def is_idle(frames: Iterable[str]) -> bool:
    """Whether a query's thread waits for its trigger."""
    return any("TriggerExecutor" in frame or "waitTillTime" in frame for frame in frames) and all(
        _part(frame) is None for frame in frames
    )


def parts_of(frames: Iterable[str]) -> list[str]:
    """Return the parts of a stack, outermost first; one that calls itself stands once."""
    parts: list[str] = []
    for frame in frames:
        part = _part(frame)
        if part is not None and parts[-1:] != [part]:
            parts.append(part)
    return parts[::-1]


def part_of(parts: Sequence[str]) -> str:
    """Return the part that a stack's time is counted to, one of PARTS."""
    if not parts:
        return OTHER
    if parts[-1] == JOBS and len(parts) > 1 and parts[-2] in _OWN_JOBS:
        return parts[-2]
    return parts[-1]


@lru_cache(maxsize=16_384)
def _part(frame: str) -> str | None:
    name = _LOADED_BY.sub("", frame.partition("(")[0])
    for part, pattern in _PATTERNS:
        if pattern.search(name):
            return part
    return None
