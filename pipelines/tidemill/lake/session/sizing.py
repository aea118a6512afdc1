"""How large a local session is: tasks at a time, shuffle partitions, memory of the driver.

They follow the machine, or the container, as far as small batches gain from it: as many tasks as
cores, up to MOST_TASKS, and as many partitions, so that each stage is one round of tasks and a
MERGE writes a file per core; a gigabyte for each task, from 2 up to a quarter of the memory, half
of it from the start.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import psutil

GB = 1024**3
MOST_TASKS = 8
LEAST_PARTITIONS = 2
LEAST_MEMORY = 2  # GB
_MEGABYTES = {"": 1, "m": 1, "g": 1024, "t": 1024**2}
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


def initial_heap(driver_memory: str) -> str:
    """Return the JVM's option for the heap to begin with, half of the driver's memory, which is as
    Spark reads it: MiB without a unit. Empty below 1g, and for what is not a size."""
    said = re.fullmatch(r"(\d+)([mgt]?)b?", driver_memory.strip().lower())
    megabytes = int(said[1]) * _MEGABYTES[said[2]] if said else 0
    return f"-Xms{megabytes // 2}m" if megabytes >= _MEGABYTES["g"] else ""


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
