"""Who answers the statements of a batch of sessions: DuckDB in the driver, or Spark.

few events, a folder's table, keys that both tell apart alike    DuckDB, from the table's files
any other batch                                                  Spark, a job or more for each

The sessions themselves are Spark's in either case, of events that DuckDB found in the files of the
hours, where there are few, or Spark. What DuckDB answers comes back to Spark as rows of the driver,
of which a job takes next to no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidemill.config.stream_operators.sessions import Sessions
from tidemill.lake import times
from tidemill.lake.catalog import Lake
from tidemill.lake.commits import change_feed, data_files
from tidemill.lake.parameters import ask, beside_code
from tidemill.lake.tables import Table
from tidemill.pipeline.row_writes.frame_cache import kept_for_merge
from tidemill.pipeline.streams.keyed_merge import HourRange

if TYPE_CHECKING:
    import duckdb
    import pyarrow

# What the driver takes: events of a batch, events in its spans, and sessions that may be there.
MOST_EVENTS, MOST_INSIDE, MOST_SESSIONS = 200_000, 400_000, 500_000
# Keys that DuckDB and Spark compare alike: there are two zeros among doubles.
_ALIKE = ("STRING", "BIGINT", "BOOLEAN", "DECIMAL", "TIMESTAMP")


class NotInDriver(Exception):
    """The driver does not answer for this batch: Spark does."""


class SessionEngine(Protocol):
    """Answers statements over rows, which are its own."""

    def known(self, hours: HourRange) -> Any:
        """Return the sessions of the table that are in some hours, if with one end."""

    def due(self, watermark: int, since: datetime | None) -> Any:
        """Return the open sessions that end before the watermark, in microseconds; none of them
        ends before `since`, None where nobody knows."""

    def ask(self, text: str, **rows: Any) -> Any:
        """Return what a statement yields, of rows by their names behind `tidemill_`."""

    def inside(
        self, text: str, spans: Any, hours: HourRange, clean: int, columns: Sequence[str]
    ) -> DataFrame:
        """Return what a statement yields of the spans and the events of some hours, up to a batch
        of clean, of which it has these columns."""

    def kept(self, rows: Any) -> Any:
        """Return rows that are read more than once."""

    def only(self, rows: Any) -> dict[str, Any]:
        """Return the only one of rows, its times in UTC."""

    def check(self, sessions: int) -> None:
        """Return where this engine takes as many sessions as that; else NotInDriver."""

    def made(self, sessions: DataFrame, watermark: int) -> Any:
        """Return sessions, each `closed` where it ends before the watermark, in microseconds."""


class InSpark:
    """Spark answers, of a table anywhere and a batch of any size."""

    def __init__(self, lake: Lake, table: Table, keeping: ExitStack):
        """Hold where the sessions are; `keeping` ends what is kept."""
        self._lake, self._table, self._keeping = lake, table, keeping

    def known(self, hours: HourRange) -> DataFrame:
        """See `SessionEngine`."""
        begun, ended = map(times.at, hours)
        return self._sessions().where(
            (F.col("session_start") <= ended) & (F.col("closes_at") >= begun)
        )

    def due(self, watermark: int, since: datetime | None) -> DataFrame:
        """See `SessionEngine`."""
        open_ = self._sessions().where(~F.col("closed"))
        if since is not None:
            open_ = open_.where(F.col("closes_at") >= times.at(since))
        return open_.where(self._ends_before(watermark))

    def ask(self, text: str, **rows: DataFrame) -> DataFrame:
        """See `SessionEngine`."""
        frames = {f"tidemill_{name}": frame for name, frame in rows.items()}
        return ask(self._lake.spark, text, {}, frames)

    def kept(self, rows: DataFrame) -> DataFrame:
        """See `SessionEngine`."""
        return self._keeping.enter_context(kept_for_merge(rows, self._lake))

    def only(self, rows: DataFrame) -> dict[str, Any]:
        """See `SessionEngine`."""
        return times.collect(rows)[0].asDict()

    def check(self, sessions: int) -> None:
        """See `SessionEngine`."""

    def made(self, sessions: DataFrame, watermark: int) -> DataFrame:
        """See `SessionEngine`."""
        return sessions.withColumn("closed", self._ends_before(watermark))

    def inside(
        self, text: str, spans: DataFrame, hours: HourRange, clean: int, columns: Sequence[str]
    ) -> DataFrame:
        """See `SessionEngine`."""
        events = _events_of(self._lake, hours, clean, columns)
        return self.ask(text, events=events, spans=spans)

    def _ends_before(self, watermark: int) -> Column:
        at = beside_code(watermark, self._table.columns[0].name)
        return F.col("closes_at") < F.timestamp_micros(at)

    def _sessions(self) -> DataFrame:
        return self._lake.spark.table(self._table.name).drop("batch")


class InDriver:
    """DuckDB answers, of a folder's tables as their files are now; NotInDriver where it cannot."""

    def __init__(
        self, lake: Lake, folder: Path, table: Table, connection: duckdb.DuckDBPyConnection
    ):
        """Hold where the sessions are, and a connection of this batch's own."""
        self._lake, self._folder, self._connection = lake, folder, connection
        with _answering():
            self._sessions = _opened(folder / table.name)

    def known(self, hours: HourRange) -> Any:
        """See `SessionEngine`."""
        from pyarrow.dataset import field

        begun, ended = hours
        return self._sessions.filter(
            (field("session_start") <= ended) & (field("closes_at") >= begun)
        )

    def due(self, watermark: int, since: datetime | None) -> Any:
        """See `SessionEngine`."""
        from pyarrow.dataset import field

        ends = field("closes_at")
        passed = ~field("closed") & (ends < times.of_micros(watermark))
        return self._sessions.filter(passed if since is None else passed & (ends >= since))

    def ask(self, text: str, **rows: pyarrow.Table) -> pyarrow.Table:
        """See `SessionEngine`."""
        with _answering():
            return self._answer(text, **rows).to_arrow_table()

    def kept(self, rows: pyarrow.Table) -> pyarrow.Table:
        """See `SessionEngine`."""
        return rows

    def only(self, rows: pyarrow.Table) -> dict[str, Any]:
        """See `SessionEngine`."""
        found: dict[str, Any] = rows.to_pylist()[0]
        return found

    def check(self, sessions: int) -> None:
        """See `SessionEngine`."""
        if sessions > MOST_SESSIONS:
            raise NotInDriver(f"its spans have room for {sessions:,} sessions")

    def few(self, events: DataFrame) -> pyarrow.Table:
        """Return the events of a batch; NotInDriver where they are more than `MOST_EVENTS`."""
        rows = events.limit(MOST_EVENTS + 1).toArrow()
        if rows.num_rows > MOST_EVENTS:
            raise NotInDriver(f"it has more than {MOST_EVENTS:,} events")
        return rows

    def made(self, sessions: DataFrame, watermark: int) -> pyarrow.Table:
        """See `SessionEngine`."""
        import pyarrow.compute as pc

        found = sessions.toArrow()
        ended = pc.less(found["closes_at"], times.of_micros(watermark))
        return found.append_column("closed", ended)

    def inside(
        self, text: str, spans: pyarrow.Table, hours: HourRange, clean: int, columns: Sequence[str]
    ) -> DataFrame:
        """See `SessionEngine`; the events are Spark's to find where they are many."""
        found = self._inside(text, spans, hours, clean, columns)
        if found is not None:
            # In one part, so that a key's events are together.
            return self._lake.spark.createDataFrame(found).coalesce(1)
        events = _events_of(self._lake, hours, clean, columns)
        of = {"tidemill_events": events, "tidemill_spans": self._lake.spark.createDataFrame(spans)}
        return ask(self._lake.spark, text, {}, of)

    def _inside(
        self, text: str, spans: pyarrow.Table, hours: HourRange, clean: int, columns: Sequence[str]
    ) -> pyarrow.Table | None:
        """Return the events, found in the files of the hours; None for more than `MOST_INSIDE`."""
        from pyarrow.dataset import field

        begun, ended = hours
        of_hours = (field("event_hour") >= begun) & (field("event_hour") <= ended)
        of = of_hours & (field("batch") <= clean)
        with _answering():
            # A reader, of which DuckDB asks for all rows, once: with conditions of its own on other
            # columns Arrow would go by the files' statistics, of which times end in milliseconds.
            events = _opened(self._folder / self._lake.tables.events.name)
            reader = events.scanner([*columns], filter=of).to_reader()
            answer = self._answer(text, events=reader, spans=spans)
            found = answer.limit(MOST_INSIDE + 1).to_arrow_table()
        return found if found.num_rows <= MOST_INSIDE else None

    def _answer(self, text: str, **rows: Any) -> duckdb.DuckDBPyRelation:
        for name, each in rows.items():
            self._connection.register(f"tidemill_{name}", each)
        return self._connection.sql(text.replace("`", '"'))


def _events_of(lake: Lake, hours: HourRange, clean: int, columns: Sequence[str]) -> DataFrame:
    begun, ended = map(times.at, hours)
    events = lake.spark.table(lake.tables.events.name).where(
        F.col("event_hour").between(begun, ended)
        & (F.col("batch") <= beside_code(clean, "record_id"))
    )
    return events.select(*columns)


@contextmanager
def in_spark(lake: Lake, table: Table) -> Iterator[InSpark]:
    """Give Spark's answers; what they keep is gone afterwards."""
    with ExitStack() as keeping:
        yield InSpark(lake, table, keeping)


@contextmanager
def in_driver(lake: Lake, table: Table, sessions: Sessions) -> Iterator[InDriver]:
    """Give the driver's answers; NotInDriver for a table that is not a folder's, asks for more than
    its files, or has keys that DuckDB may tell apart otherwise."""
    types = {column.name: column.type for column in table.columns}
    if (folder := lake.driver_folder) is None:
        raise NotInDriver("a folder's tables alone have files at hand")
    if not all(types[key].startswith(_ALIKE) for key in sessions.keys):
        raise NotInDriver("its keys are Spark's to compare")
    with data_files.connected() as connection:
        yield InDriver(lake, folder, table, connection)


def _opened(folder: Path) -> Any:
    from deltalake import DeltaTable

    table = DeltaTable(str(folder))
    if beyond := change_feed.beyond_files(table):
        raise NotInDriver(f"it needs {', '.join(sorted(beyond))}")
    return data_files.rows(table, folder)


@contextmanager
def _answering() -> Iterator[None]:
    import duckdb
    from deltalake.exceptions import DeltaError
    from pyarrow import ArrowException

    try:
        yield
    except (duckdb.Error, DeltaError, ArrowException, OSError) as error:
        raise NotInDriver(str(error)) from error
