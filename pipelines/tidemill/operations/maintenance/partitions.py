"""The files of a table by partition, as a newest version names them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import unquote

from tidemill.lake.catalog import Lake
from tidemill.lake.tables import Table


def files_of(lake: Lake, table: Table, below: int | None = None) -> Mapping[str, int]:
    """Count the files of each partition of the newest version, by the partition's value: those
    `below` a number of bytes, where given and where the lake is a folder, which tells it."""
    (column,) = table.partitioned_by
    value = re.compile(rf"(?:^|/){column}=([0-9 :-]+)/")
    files = lake.files(table.name)
    if below is not None:
        files = [file for file in files if file.bytes is None or file.bytes < below]
    matches = (value.search(unquote(unquote(file.path))) for file in files)
    return Counter(each[1] for each in matches if each)


def text_of(column: str, time_: datetime) -> str:
    """Return a time as the folders of a partition by hour, or by day, are named."""
    return f"{time_:%Y-%m-%d %H:00:00}" if column.endswith("_hour") else f"{time_:%Y-%m-%d}"
