"""A lake as programs use it: a notebook, a job, a test and the command line.

    open_lake(root) ──► Lake ── reads ──► DataFrame (rows), dict (facts, as --json prints them)
                         └───── writes, in `with open_lake(..., write=True)`

Each call sees the lake as it stands then. Times come in UTC, and go in with a zone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from pyspark.sql import DataFrame, SparkSession

from tidemill.api import point_in_time, reads, writes
from tidemill.api.holding import Access, ignore
from tidemill.api.moments import Moment
from tidemill.api.reads import Facts
from tidemill.api.refused_records import Quarantine
from tidemill.config.pipeline_file import PipelineDefinition
from tidemill.config.settings import Clock, Place
from tidemill.errors import UsageError
from tidemill.features import FeatureView
from tidemill.monitoring.prometheus import check_port
from tidemill.operations.maintenance import Done
from tidemill.operations.replay_range import OffsetRange
from tidemill.pipeline import connection
from tidemill.pipeline.observer import Tell as OnBatch
from tidemill.query import describe, gold_history, questions
from tidemill.query.engines import folder_tables
from tidemill.query.gold_history import GoldVersion, Status
from tidemill.training.past_answers import Key

if TYPE_CHECKING:
    import duckdb

LOCALHOST = "127.0.0.1"


class Lake:
    """An open lake, as `open_lake` returns it.

    What returns a dict returns what the command of the same name prints with --json. A view or a
    table that the lake does not have is refused with the names that are near.
    """

    def __init__(self, access: Access):
        """Take what `open_lake` has checked."""
        self._access = access

    def __enter__(self) -> Lake:
        """Hold the lake for writing, where it was opened so; LockedError while another does."""
        self._access.hold()
        return self

    def __exit__(self, *_: object) -> None:
        """Let others write."""
        self._access.release()

    @property
    def place(self) -> Place:
        """Where the lake is."""
        return self._access.opening.place

    @property
    def clock(self) -> Clock:
        """What time it is for this lake."""
        return self._access.opening.clock

    @property
    def spark(self) -> SparkSession:
        """The session, with the lake's schema as the current one."""
        return self._access.session()

    @property
    def pipeline(self) -> PipelineDefinition:
        """The pipeline that the lake was opened with; UsageError where none was named."""
        return self._access.the_pipeline()

    @property
    def quarantine(self) -> Quarantine:
        """The refused records."""
        return Quarantine(self._access)

    def view(self, name: str) -> FeatureView:
        """Return a feature view as its pipeline declares it."""
        return self._access.declaring(name).view(name)

    def table(self, name: str, version: int | None = None) -> DataFrame:
        """Return the rows of a table or view of the lake, at a version of a table if given."""
        return reads.table(self._access, name, version)

    def sql(self, text: str, values: Mapping[str, Any] | None = None) -> DataFrame:
        """Return what one statement yields that only reads; `:name` stands for `values[name]`.

        Tables are named plainly. UsageError for a statement that writes, or that Spark refuses.
        """
        return questions.frame(self.spark, questions.read_only(text), values or {})

    def query(self, question: str) -> DataFrame:
        """Return the answer to a question of `sql/adhoc`, such as `trending`, or to a file's."""
        text = questions.asked(None, question)
        return questions.frame(self.spark, text, {})

    def answer(
        self,
        sql: str | None = None,
        *,
        question: str | None = None,
    ) -> Facts:
        """Return `{columns, rows}` of one statement or question as JSON holds them, times as text.

        Unlike `sql` and `query`, whose rows are Spark's, by the engine that the lake was opened
        with: DuckDB needs no session.
        """
        return reads.answer(self._access, questions.asked(sql, question))

    def status(self, view: str) -> Status:
        """Return how far the view's gold table is, by its own ledger."""
        return gold_history.status(*reads.of_view(self._access, view), self.clock)

    @overload
    def history(self, view: str) -> list[GoldVersion]: ...
    @overload
    def history(self, view: str, keys: Iterable[Key], start: Moment, end: Moment) -> DataFrame: ...
    def history(
        self,
        view: str,
        keys: Iterable[Key] | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
    ) -> list[GoldVersion] | DataFrame:
        """Return what gold answered for some keys in [start, end), a row for each change; without
        keys the versions of gold that refreshes committed, newest first, as far as the log reaches.

        A key is a mapping, or its values in the view's order. The rows have keys, `valid_from`,
        `valid_to`, as_of, version and features. LakeError for a start before what is kept.
        """
        if keys is None:
            return gold_history.versions(*reads.of_view(self._access, view))
        if start is None or end is None:
            expected = "history(view, keys, start, end)"
            raise UsageError("has no span of time", where="history", expected=expected)
        return point_in_time.history(self._access, view, keys, start, end)

    def snapshot(self, view: str, at: Moment) -> DataFrame:
        """Return what the view's gold answered at a time, for every key that it had a row of.

        From the view's history, which reaches further back than the files that `features` reads.
        LakeError for a time before what is kept, with the first that is.
        """
        return point_in_time.snapshot(self._access, view, at)

    def training_set(
        self,
        spine: Any,
        views: str | Sequence[str] = (),
        *,
        mode: str = "event",
        time: str = "timestamp",
        outside: str = "error",
        duplicates: str = "error",
    ) -> DataFrame:
        """Return a spine's rows, each with the features of its keys at its time, by default of all
        views of the pipeline.

        The spine has the views' keys, a `time` and any other columns: a DataFrame of Spark or
        pandas, or a file. `mode="event"` is what was true then, by all that is known now: windows
        end at the last end of a bucket at or before the time. `mode="served"` is what gold answered
        then. Rows of times that cannot be answered are an error, or with `outside="null"` named in
        a column `outside_history`; so are rows of the same keys and time, unless
        `duplicates="keep"`.
        """
        words = (mode, time, outside, duplicates)
        return point_in_time.made(self._access, spine, views, *words)[0].rows

    def write_training_set(
        self,
        spine: Any,
        output: str | Path,
        views: str | Sequence[str] = (),
        *,
        mode: str = "event",
        time: str = "timestamp",
        outside: str = "error",
        duplicates: str = "error",
        on_step: Callable[[str], None] = ignore,
    ) -> Facts:
        """Write what `training_set` returns to a file, CSV, JSON lines or Parquet by its suffix;
        return its columns, its number of rows and the times that each view could answer."""
        words = (mode, time, outside, duplicates)
        return point_in_time.written(self._access, spine, Path(output), views, *words, on_step)

    def audit(
        self,
        view: str,
        *,
        store: str | None = None,
        sample: int = 1_000,
        responses: str | Path | None = None,
        on_step: Callable[[str], None] = ignore,
    ) -> Facts:
        """Compare, for some keys drawn by a hash, what the online store has, gold, a recompute and
        `training_set(mode="served")`; and answers of the response log of `tidemill serve`.

        Returns `{view, gold_version, as_of, keys, compared, different, sources, examples, skipped,
        store}`; a source has its rates of mismatch, missing and extra by feature, 0 expected. The
        store is the pipeline's, else a file in the lake's folder. StoreError where nothing is
        published of the view.
        """
        log = None if responses is None else Path(responses)
        return point_in_time.audited(self._access, view, store, sample, log, on_step)

    def features(self, view: str, at: Moment | None = None) -> DataFrame:
        """Return the view's gold table, as it is or as it was as of a time.

        That is the version with the latest as_of at or before `at`, the last one of them: what
        came later is not in it. UsageError for a time after gold's as_of, before the first refresh
        or without a zone; LakeError for one that Delta's history no longer reaches.
        """
        return reads.features(self._access, view, at)

    def describe(self, view: str) -> Facts:
        """Return a view's features and tables, how fresh gold is, and what the newest ledgers
        say."""
        return describe.describe(*reads.of_view(self._access, view), self.clock)

    def explain(
        self,
        view: str,
        key: Sequence[object] | Mapping[str, object] | None = None,
        /,
        *,
        feature: str | None = None,
        at: Moment | None = None,
        **keys: object,
    ) -> Facts:
        """Return why a key's features, or one of them, have their values: windows, buckets, events.

        The key is `profile_id="p", gti="t"`, or its values in the view's order. `at` is another
        time, the end of a bucket: recomputed then from the buckets.
        """
        return reads.explain(self._access, view, keys if key is None else key, feature, at)

    def reconcile(
        self,
        view: str,
        version: int | None = None,
        *,
        source: str = "buckets",
        repair: bool = False,
    ) -> Facts:
        """Return how many keys of gold, at a version or now, differ from the recompute.

        From the buckets or from the accepted events. `repair` recomputes what is different, and
        needs `write=True`.
        """
        return writes.reconcile(self._access, view, version, source=source, repair=repair)

    def duckdb(self, *tables: str) -> duckdb.DuckDBPyConnection:
        """Return a DuckDB connection that knows these tables, as they stand, without Spark."""
        return folder_tables.connect(self, *tables)

    def changes(self, table: str, since: int) -> Any:
        """Return a table's change data feed since a version, in Arrow."""
        return folder_tables.changes(self, table, since)

    def alerts(self, *, all_of_them: bool = False) -> list[Facts]:
        """Return a row for each episode in which a rule of the pipeline's `alerts` held for a key:
        alert, view, key, `fired_at`, `resolved_at`, None while it goes on, and what the rule read
        when it fired, as `features`. Those that go on, or all of them; the newest 1,000."""
        return reads.alerts(self._access, all_of_them=all_of_them)

    def frames(self) -> Iterator[Facts]:
        """Yield where every query of every pipeline stands, each time one asks: what `top` shows.
        A folder's logs are read without Spark."""
        return reads.frames(self._access)

    def report(self, output: str | Path, days: int = 7) -> Facts:
        """Write one page on the pipeline's last days; return its numbers, and `output`."""
        return reads.report(self._access, Path(output), days)

    def check(self, docs: str | Path | None = None) -> Facts:
        """Check the pipeline's tables against its quality file; return `ok` and each check. Keeps
        what it found in `tidemill_quality`, and writes Data Docs; needs no `write`."""
        return reads.check(self._access, Path(docs) if docs is not None else None)

    def plan(self) -> list[Facts]:
        """Return how each view differs from its tables, and the command that settles it. Changes
        nothing."""
        return reads.plan(self._access)

    def expected_state(self, rate: float | None = None) -> list[Facts]:
        """Return for each stream how many rows its state will hold when each of its inputs gets
        `rate` events a second, by default as many as the lake's events tell: the rate times the
        time for which an event is kept; None while there are no events to tell. UsageError for a
        rate that is not above 0."""
        return reads.expected_state(self._access, rate)

    def check_run(
        self, *, once: bool, metrics_port: int | None = None, metrics_host: str = LOCALHOST
    ) -> None:
        """Raise InputError where the pipeline's source cannot be read, UsageError where the port is
        taken; nothing is started or made."""
        check_port(metrics_port, metrics_host)
        connection.checked_source(self._access.opening, self._access.the_pipeline(), once=once)

    def run_once(
        self,
        on_batch: OnBatch = ignore,
        *,
        metrics_port: int | None = None,
        metrics_host: str = LOCALHOST,
        profile: bool = False,
    ) -> Facts:
        """Bring everything that is in the source through to gold; return the totals. `on_batch` is
        called with what batches did; with `profile` the totals say where the time of each batch
        went, which `tidemill_profiles` keeps. Needs `write=True`, as all that follows."""
        served = (metrics_port, metrics_host)
        return writes.run(self._access, on_batch, *served, once=True, profile=profile)

    def run(
        self,
        on_batch: OnBatch = ignore,
        *,
        metrics_port: int | None = None,
        metrics_host: str = LOCALHOST,
        profile: bool = False,
    ) -> Facts:
        """Run the pipeline until Ctrl-C or SIGTERM, maintained as it says; return the totals;
        `profile` as for `run_once`."""
        served = (metrics_port, metrics_host)
        return writes.run(self._access, on_batch, *served, once=False, profile=profile)

    def replay(self, topic: str, first: int, end: int, partition: int | None = None) -> Facts:
        """Read offsets of a topic again, from `first` to before `end`, of one partition or of each;
        return how many records were landed, repaired, or in bronze already.

        Each counts once, whatever brings it. Only what `run` has passed: it brings the rest.
        """
        return writes.replay(self._access, OffsetRange(topic, first, end, partition))

    def refresh(self, as_of: Moment | None = None) -> list[Facts]:
        """Bring each view's gold to a time, the clock's by default, in one commit each."""
        return writes.refresh(self._access, as_of)

    def rebuild(
        self,
        source: str | None = None,
        *,
        features: Sequence[str] = (),
        views: Sequence[str] = (),
        keys: Sequence[Mapping[str, object]] = (),
        since: Moment | None = None,
        on_step: Callable[[str], None] = ignore,
        on_batch: OnBatch = ignore,
    ) -> Facts:
        """Make tables again, and bring gold to them in one commit; return the totals.

        All silver tables with `source="bronze"`; otherwise a part of the buckets from the events:
        of some features, of some views, or of some keys and from a time on.
        """
        asked = (source, features, views, keys, since)
        return writes.rebuild(self._access, *asked, on_step, on_batch)

    def recompute(
        self,
        names: Sequence[str] = (),
        *,
        day: date | None = None,
        repair: bool = False,
        on_step: Callable[[str], None] = ignore,
        on_day: Callable[[Facts], None] = ignore,
    ) -> list[Facts]:
        """Make days of UTC again from the accepted events: of each view the features at the day's
        end, of each join and totals among the streams its rows; all of them, or those of `names`.

        Return for each day `{name, kind, day, why, rows, different, causes}`: what was different
        where people read until then. The days are those that are over and new, or touched by late
        events since; or `day`. `<name>_merged` has them, and what is live for all others. Gold is
        compared too; `repair` corrects it, and needs `write=True`. UsageError for a day that is not
        over yet.
        """
        return writes.recompute(
            self._access, names, day, repair=repair, on_step=on_step, on_day=on_day
        )

    def rebuild_from_source(self, *, on_batch: OnBatch = ignore) -> Facts:
        """Make all tables again from the source, in a lake beside this one, and return the totals
        of the run, where it lies (`place`), and whether it is `complete`.

        The definition may be another one than the living tables were made by, but for the keys of
        its views. Needs no `write`: the living lake runs on. Stopped, it goes on where it was;
        called again, it catches up with the source. `diff` compares, `swap` takes it.
        """
        return writes.rebuild_beside(self._access, on_batch)

    def diff(self, *, examples: int = 10) -> list[Facts]:
        """Return for each view how the lake beside (see `rebuild_from_source`) differs from gold at
        gold's as_of: `{view, as_of, keys, different, only_in_gold, only_in_other, features, added,
        removed, changed_type, examples ...}`; nothing is written."""
        return reads.diff(self._access, examples)

    def swap(self) -> Facts:
        """Put the lake beside in the place of the living one, and bring gold to it in one commit;
        return the keys changed by view, and both generations. What was living lies beside then:
        the next swap takes it back. Stopped, the same call finishes it."""
        return writes.swap(self._access)

    def publish(
        self,
        view: str | None = None,
        *,
        store: str | None = None,
        rebuild: bool = False,
        on_view: Callable[[Facts], None] = ignore,
    ) -> list[Facts]:
        """Bring the online store to gold's newest version, one view or each that the pipeline
        publishes; return for each `{view, mode, reason, gold_version, as_of, keys, swept, seconds,
        store}`.

        The store is the pipeline's, else a file in the lake's folder; `store` names another one.
        Changed keys only are written; all of them with `rebuild`, and where the store or the change
        data feed has lost what it needs: `reason` says why. Needs no `write`. StoreError where the
        store does not answer; run again, it goes on.
        """
        return writes.publish(self._access, view, store, rebuild=rebuild, on_view=on_view)

    def ui(
        self,
        *,
        beside: Sequence[Lake] = (),
        host: str = LOCALHOST,
        port: int = 8791,
        token_env: str = "TIDEMILL_TOKEN",
        on_listening: Callable[[str], None] = ignore,
    ) -> None:
        """Show the lake in a browser until Ctrl-C or SIGTERM; the lake was opened with a pipeline.

        `beside` are other lakes, or this one with another pipeline: the first page then shows all
        at a glance. The pages read without a session. `token_env` names the variable that holds
        the token, without which only this machine is served; `on_listening` is told the URL.
        UsageError where it cannot listen, or has no token for a network; SetupError where an extra
        is missing.
        """
        from tidemill.api.page_reads import serve_pages

        serve_pages(
            [self._access, *(each._access for each in beside)],
            host=host,
            port=port,
            token_env=token_env,
            on_listening=on_listening,
        )

    def maintain(
        self, *, dry_run: bool = False, on_step: Callable[[Done], None] = ignore
    ) -> list[Facts]:
        """Keep the lake small and quick, changing no feature; return each step, its reason and what
        came of it. With `dry_run` only say what there is to do, which needs no `write`."""
        return writes.maintain(self._access, dry_run=dry_run, on_step=on_step)
