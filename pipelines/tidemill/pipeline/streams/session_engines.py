"""Who answers the statements of a batch of sessions: DuckDB in the driver, or Spark.

few events, a folder's table, keys that both tell apart alike    DuckDB, from the table's files
any other batch                                                  Spark, a job or more for each

The sessions themselves are Spark's in either case. What DuckDB answers comes back to Spark as rows
of the driver, of which a job takes next to no time.
"""

from __future__ import annotations

from collections.abc import Iterator
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

# What the driver takes: events of a batch, and sessions that there may be in its spans.
MOST_EVENTS, MOST_SESSIONS = 200_000, 500_000
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

    def kept(self, rows: Any) -> Any:
        """Return rows that are read more than once."""

    def only(self, rows: Any) -> dict[str, Any]:
        """Return the only one of rows, its times in UTC."""

    def check(self, sessions: int) -> None:
        """Return where this engine takes as many sessions as that; else NotInDriver."""

    def rows(self, frame: DataFrame) -> Any:
        """Return a frame's rows as this engine has them."""

    def frame(self, rows: Any) -> DataFrame:
        """Return rows as a frame."""


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
        return open_.where(ends_before(watermark, self._table))

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

    def rows(self, frame: DataFrame) -> DataFrame:
        """See `SessionEngine`."""
        return frame

    frame = rows

    def _sessions(self) -> DataFrame:
        return self._lake.spark.table(self._table.name).drop("batch")


class InDriver:
    """DuckDB answers, of a folder's table as its files are now; NotInDriver where it cannot."""

    def __init__(self, lake: Lake, folder: Path, connection: duckdb.DuckDBPyConnection):
        """Hold where the sessions are, and a connection of this batch's own."""
        self._lake, self._connection = lake, connection
        with _answering():
            self._sessions = _opened(folder)

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
            for name, each in rows.items():
                self._connection.register(f"tidemill_{name}", each)
            return self._connection.sql(text.replace("`", '"')).to_arrow_table()

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

    def rows(self, frame: DataFrame) -> pyarrow.Table:
        """See `SessionEngine`."""
        return frame.toArrow()

    def frame(self, rows: pyarrow.Table) -> DataFrame:
        """See `SessionEngine`."""
        return self._lake.spark.createDataFrame(rows)


def ends_before(watermark: int, table: Table) -> Column:
    """Return the condition of a session to end before the watermark, in microseconds."""
    return F.col("closes_at") < F.timestamp_micros(beside_code(watermark, table.columns[0].name))


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
        yield InDriver(lake, folder / table.name, connection)


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
