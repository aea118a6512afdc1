"""How large a local session is: tasks at a time, shuffle partitions, memory of the driver.

They follow the machine, or the container, as far as small batches gain from it: as many tasks as
cores, up to MOST_TASKS, and as many partitions, so that each stage is one round of tasks and a
MERGE writes a file per core; a gigabyte for each task, from 2 up to a quarter of the memory.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

GB = 1024**3
MOST_TASKS = 8
LEAST_PARTITIONS = 2
LEAST_MEMORY = 2  # GB
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


@dataclass(frozen=True)
class Sizing:
    """What a local session takes of a machine; `driver_memory` as Java reads it, such as `2g`."""

    tasks: int
    shuffle_partitions: int
    driver_memory: str


def sizing(cores: int, memory: int) -> Sizing:
    """Return what a session takes of so many cores and bytes."""
    tasks = min(cores, MOST_TASKS)
    gigabytes = max(LEAST_MEMORY, min(tasks, memory // GB // 4))
    return Sizing(tasks, max(LEAST_PARTITIONS, tasks), f"{gigabytes}g")


def here() -> Sizing:
    """Return what a session takes of this machine."""
    return sizing(cores(), memory())


def cores() -> int:
    """Return the number of cores this process may use, which in a container is less than all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def memory() -> int:
    """Return the bytes of memory this process may use: the machine's, or its container's limit."""
    total = int(psutil.virtual_memory().total)
    for path in _LIMITS:
        try:
            limit = int(path.read_text())
        except (OSError, ValueError):  # no such limit, or `max`
            continue
        return min(total, limit)
    return total
