"""The generator as a source: made-up records, a minute after the other, as a Spark stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from tidemill.errors import InputError
from tidemill.sources.generator.kinds import ENGAGEMENT
from tidemill.sources.generator.mix import DEFAULT_MIX, Mix
from tidemill.sources.generator.records import minute_records, records_before

if TYPE_CHECKING:
    import pyarrow as pa

FORMAT = "tidemill_generator"
SCHEMA = (
    "record_id STRING, raw_payload STRING, topic STRING, "
    "partition INT, offset BIGINT, source_ts TIMESTAMP"
)
READERS = 2


@dataclass(frozen=True)
class Generator:
    """Made-up records of one kind: the same (seed, start), the same records, in any batches.

    `start` is a whole minute (no zone means UTC). None is the current hour, minus `minutes`
    where they end; it is fixed when the object is made, so a restart passes the first start
    again. `minutes=None` never ends: minutes come as the clock completes them, by `now` where
    given. `rate` is records a minute, the mean of a day. A batch has at most `most_records` where
    given, but never less than a minute. `released_in` is a file that holds how many minutes may be
    read by now, for who lets the events come; without it, all at once. `events` names the kind.
    """

    start: datetime | None = None
    seed: int = 7
    rate: int = 500
    minutes: int | None = 1560
    minutes_per_batch: int = 130
    mix: Mix = field(default=DEFAULT_MIX)
    now: datetime | None = None
    released_in: str | None = None
    events: str = ENGAGEMENT
    most_records: int | None = None

    def __post_init__(self) -> None:
        """Fix the start, in UTC."""
        start = self.start or _hour(self.now) - timedelta(minutes=self.minutes or 0)
        object.__setattr__(self, "start", _utc(start))

    @property
    def first(self) -> datetime:
        """The start, as it was given or found."""
        assert self.start is not None
        return self.start

    def identity(self) -> dict[str, str | int]:
        """Return seed, start, rate and, where they are others than usual, the kind of the events
        and the share of late ones: another value of one of them is another stream."""
        start = self.first.isoformat().replace("+00:00", "Z")
        usual = {"events": ENGAGEMENT, "late": str(DEFAULT_MIX.late)}
        ours = {"events": self.events, "late": str(self.mix.late)}
        return {
            "kind": "generator",
            "seed": self.seed,
            "start": start,
            "rate": self.rate,
            **{word: said for word, said in ours.items() if said != usual[word]},
        }

    def check(self, *, once: bool) -> None:
        """Raise InputError for a start within a minute, or a number below 1."""
        if self.first.second or self.first.microsecond:
            raise InputError(
                f"the generator cannot start at {self.first.isoformat()}",
                where="start",
                expected="a whole minute, such as 2026-11-21T10:05",
            )
        numbers = {"rate": self.rate, "minutes": self.minutes, "batch": self.minutes_per_batch}
        for name, number in numbers.items():
            if number is not None and number < 1:
                raise InputError(f"{name} is {number}", where=name, expected="1 or more")

    def check_new(self, since: datetime) -> None:
        """Accept: it makes its records itself."""

    def ready(self) -> bool:
        """Return True: there is nothing to wait for."""
        return True

    def available(self) -> int:
        """Return how many minutes can be read now: all of them, or those the clock completed."""
        if self.minutes is not None:
            return min(self.minutes, self._released())
        now = _utc(self.now) if self.now else datetime.now(timezone.utc)
        return max(0, (now - self.first) // timedelta(minutes=1))

    @property
    def total(self) -> int:
        """How many records there are in all; 0 when it never ends."""
        return self.before(self.minutes or 0)

    def before(self, minute: int) -> int:
        """Return how many records there are before a minute, counted from the start."""
        return records_before(self.first, minute, self.rate)

    def _released(self) -> int:
        if self.released_in is None:
            return self.minutes or 0
        return int(Path(self.released_in).read_text(encoding="ascii"))

    def release(self, minutes: int) -> None:
        """Let the events of the first so many minutes be read; `released_in` tells where."""
        file = Path(str(self.released_in))
        new = file.with_suffix(".new")
        new.write_text(str(minutes), encoding="ascii")
        new.replace(file)  # whoever reads it finds a whole number

    def records(self, minute: int) -> list[str]:
        """Return the raw payloads of one minute, counted from the start."""
        return minute_records(self.seed, self.first, minute, self.rate, self.mix, self.events)

    def capped(self, first: int, end: int) -> int:
        """Return the minute before which a batch of [first, end) ends for its records."""
        while self.most_records and end - first > 1:
            if self.before(end) - self.before(first) <= self.most_records:
                break
            end -= 1
        return end

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the records as a stream of at most `minutes_per_batch` minutes a batch.

        `offset` counts the records from 0, `source_ts` is the record's minute.
        """
        spark.dataSource.register(GeneratorSource)
        return spark.readStream.format(FORMAT).option("generator", self.to_json()).load()

    def to_json(self) -> str:
        """Return the generator as text; `from_json` reads it."""
        return json.dumps(asdict(self), default=datetime.isoformat)

    @staticmethod
    def from_json(text: str) -> Generator:
        """Return the generator that `to_json` wrote."""
        fields = json.loads(text)
        times = {n: datetime.fromisoformat(fields[n]) for n in ("start", "now") if fields[n]}
        return Generator(**{**fields, **times, "mix": Mix(**fields["mix"])})


def _utc(at: datetime) -> datetime:
    if at.tzinfo is None:
        return at.replace(tzinfo=timezone.utc)
    return at.astimezone(timezone.utc)


def _hour(now: datetime | None) -> datetime:
    return _utc(now or datetime.now(timezone.utc)).replace(minute=0, second=0, microsecond=0)


@dataclass
class Minutes(InputPartition):
    """The minutes [first, end), read by one task."""

    first: int
    end: int


class GeneratorSource(DataSource):
    """Spark's entry to the generator; its option `generator` is `Generator.to_json`."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `spark.readStream.format`."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns every source has."""
        return SCHEMA

    def streamReader(self, schema: StructType) -> GeneratorReader:
        """Return the reader; Spark keeps one per query beside the driver."""
        return GeneratorReader(Generator.from_json(self.options["generator"]))


class GeneratorReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches of whole minutes and makes their records in the workers."""

    def __init__(self, generator: Generator):
        """Read what `generator` makes."""
        self.generator = generator
        self.last: int | None = None

    def initialOffset(self) -> dict[str, int]:
        """Return minute 0."""
        return {"minute": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return a batch as records, the unit that Spark has: its minutes times the mean rate."""
        return ReadMaxRows(self.generator.minutes_per_batch * self.generator.rate)

    def prepareForTriggerAvailableNow(self) -> None:
        """Fix the end of an availableNow run, so that an endless generator ends too."""
        self.last = self.generator.available()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Return the minute before which the next batch ends; never before its start."""
        end = self.generator.available() if self.last is None else self.last
        if isinstance(limit, ReadMaxRows):
            end = min(end, start["minute"] + max(1, limit.max_rows // self.generator.rate))
            end = self.generator.capped(start["minute"], end)
        elif not isinstance(limit, ReadAllAvailable):
            raise TypeError(f"the generator is limited by rows, not by {limit}")
        return {"minute": max(end, start["minute"])}

    def reportLatestOffset(self) -> dict[str, int]:
        """Return what could be read by now, for the query's progress."""
        return {"minute": self.generator.available()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[Minutes]:
        """Return the batch's minutes in equal parts, one per reader."""
        first, minutes = start["minute"], end["minute"] - start["minute"]
        cuts = [first + minutes * part // READERS for part in range(READERS + 1)]
        return [Minutes(a, b) for a, b in pairwise(cuts) if a < b]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield one Arrow batch per minute."""
        assert isinstance(partition, Minutes)
        for minute in range(partition.first, partition.end):
            yield _arrow(self.generator, minute)


def _arrow(generator: Generator, minute: int) -> pa.RecordBatch:
    """Return a minute's records with the columns of SCHEMA."""
    import pyarrow as pa

    payloads = generator.records(minute)
    first = generator.before(minute)
    offsets = range(first, first + len(payloads))
    at = generator.first + timedelta(minutes=minute)
    columns: dict[str, Any] = {
        "record_id": pa.array([f"generator:0:{offset}" for offset in offsets], pa.string()),
        "raw_payload": pa.array(payloads, pa.string()),
        "topic": pa.repeat("generator", len(payloads)),
        "partition": pa.repeat(pa.scalar(0, pa.int32()), len(payloads)),
        "offset": pa.array(offsets, pa.int64()),
        "source_ts": pa.repeat(pa.scalar(at, pa.timestamp("us", "UTC")), len(payloads)),
    }
    return pa.RecordBatch.from_pydict(columns)
