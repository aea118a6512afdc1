"""What an open lake answers; the functions behind the reading methods of `Lake`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from tidemill.api.holding import Access
from tidemill.api.moments import Moment, moment
from tidemill.config.settings import exact
from tidemill.errors import UsageError
from tidemill.features import FeatureView
from tidemill.features.suggestions import did_you_mean
from tidemill.lake.statements import statement
from tidemill.operations import expected_state as expected_states
from tidemill.operations import planned_changes
from tidemill.query import explain as explaining
from tidemill.query import gold_history
from tidemill.query.engines import choice

if TYPE_CHECKING:
    from tidemill.lake import catalog

Facts = dict[str, Any]


def of_view(access: Access, view: str) -> tuple[catalog.Lake, FeatureView]:
    """Return the lake for reading, as the pipeline that declares the view, and the view."""
    definition = access.declaring(view)
    return access.reader(definition), definition.view(view)


def table(access: Access, name: str, version: int | None) -> DataFrame:
    """Return the rows of a table or view; UsageError for one that the lake does not have."""
    spark = access.session()
    if not spark.catalog.tableExists(name):
        hint = did_you_mean(name, [row["tableName"] for row in spark.sql("SHOW TABLES").collect()])
        raise UsageError(f"has no table {name!r}{hint}", where=str(access.opening.place))
    reader = spark.read if version is None else spark.read.option("versionAsOf", version)
    return reader.table(name)


def answer(access: Access, text: str) -> Facts:
    """Return `{columns, rows}` of a statement, by the engine that is asked or that can."""
    place, tell = access.opening.place, access.on_engine
    return choice.answer(text, place, access.definitions(), access.engine, access.session, tell)


def features(access: Access, view: str, at: Moment | None) -> DataFrame:
    """Return the view's gold table, as it is or as it was as of a time."""
    if at is None:
        lake, declared = of_view(access, view)
        return lake.spark.table(f"{declared.name}_features")
    time_asked = moment(at, "at")
    return gold_history.rows_at(*of_view(access, view), time_asked)


def explain(
    access: Access,
    view: str,
    key: Sequence[object] | Mapping[str, object],
    feature: str | None,
    at: Moment | None,
    most: int | None = None,
) -> Facts:
    """Return why the features of a key have their values; of the events the newest `most`."""
    declared = access.declaring(view).view(view)
    words = explaining.words_of(declared, key)
    asked = explaining.asked(declared, words, feature)
    time_asked = moment(at, "at") if at is not None else None
    return explaining.explain(of_view(access, view)[0], asked, time_asked, most)


def diff(access: Access, examples: int) -> list[Facts]:
    """Return how the other generation differs from gold, by view."""
    # Not at the top: a lake that is only read knows nothing of what rebuilds it.
    from tidemill.operations.swap import difference

    found = difference.differences(access.opening, access.the_pipeline(), examples)
    for view in found:
        view["examples"] = explaining.plain(view["examples"])
    return found


def alerts(access: Access, *, all_of_them: bool) -> list[Facts]:
    """Return the episodes of the pipeline's alerts, those that go on, or all of them."""
    lake = access.reader()
    if not lake.has(lake.tables.alerts.name):
        return []
    text = statement("alert_episodes", lake.pipeline.events, source=lake.pipeline.pipeline)
    found = [dict(row) for row in lake.ask(text, {}).rows]
    texts: dict[str, Callable[[Any], Any]] = {
        "key": json.loads,
        "features": json.loads,
        "fired_at": exact,
        "resolved_at": exact,
    }
    return [
        {
            name: texts[name](value) if name in texts and value is not None else value
            for name, value in row.items()
        }
        for row in found
        if all_of_them or row["resolved_at"] is None
    ]


def frames(access: Access) -> Iterator[Facts]:
    """Return an iterator that tells where every query stands each time it is asked."""
    from tidemill.monitoring import status

    return status.frames(access.opening.place, access.opening.clock, access.session)


def plan(access: Access) -> list[Facts]:
    """Return how each view differs from its tables, and the command that settles it."""
    return planned_changes.plan(access.opening, access.the_pipeline())


def expected_state(access: Access, rate: float | None) -> list[Facts]:
    """Return how many rows the state of each stream will hold."""
    return expected_states.expected_state(access.as_found(), rate)


def report(access: Access, output: Path, days: int) -> Facts:
    """Write one page on the pipeline's last days; return its numbers, and `output`."""
    from tidemill.monitoring.report import html, measurements, page

    page.check(output)
    with ThreadPoolExecutor(1) as beside:  # what draws is imported while the numbers are read
        beside.submit(html.warm)
        numbers = measurements.report(access.reader(), access.opening.clock, days)
    return {**numbers, "output": str(page.write(numbers, output))}


def check(access: Access, docs: Path | None) -> Facts:
    """Check the pipeline's tables against its quality file."""
    from tidemill.quality.expectations import gx
    from tidemill.quality.gate import gate

    gx()
    return gate(access.reader(), access.opening.clock, docs, access.opening.wait)
