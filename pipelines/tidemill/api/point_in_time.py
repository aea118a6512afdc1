"""Training sets and past answers of an open lake; the functions behind these methods of `Lake`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame

from tidemill.api.holding import Access
from tidemill.api.moments import Moment, moment
from tidemill.api.reads import Facts, of_view
from tidemill.config.publishing import Publishing
from tidemill.errors import UsageError
from tidemill.pipeline import publication
from tidemill.training import audit, kept_audits, past_answers, spine_file, training_set
from tidemill.training.past_answers import Key
from tidemill.training.training_set import TrainingSet, Wanted


def made(
    access: Access,
    spine: Any,
    views: str | Sequence[str],
    mode: str,
    time: str,
    outside: str,
    duplicates: str,
) -> tuple[TrainingSet, Wanted]:
    """Return a training set of a spine, and what it was to hold."""
    names = [views] if isinstance(views, str) else list(views)
    names = names or [view.name for view in access.the_pipeline().views]
    of_views = [of_view(access, name) for name in names]
    options = {"mode": mode, "time": time, "outside": outside, "duplicates": duplicates}
    wanted = Wanted(of_views, access.opening.clock, **options)
    wanted.check()
    access.session()
    keys = [key for _, view in of_views for key in view.keys]
    return training_set.training_set(_frame(access, spine, [*keys, time]), wanted), wanted


def _frame(access: Access, spine: Any, as_text: Sequence[str]) -> DataFrame:
    """Return the rows of a spine, whatever it is given as."""
    spark = access.session()
    if isinstance(spine, str | Path):
        return spine_file.read(spark, Path(spine), as_text)
    if hasattr(spine, "sparkSession"):
        return spine  # type: ignore[no-any-return]
    if type(spine).__module__.partition(".")[0] == "pandas":
        return spark.createDataFrame(spine)
    expected = "a DataFrame of Spark or pandas, or the path of a file"
    raise UsageError(f"is {type(spine).__name__}", where="spine", expected=expected)


def written(
    access: Access,
    spine: Any,
    output: Path,
    views: str | Sequence[str],
    mode: str,
    time: str,
    outside: str,
    duplicates: str,
    on_step: Callable[[str], None],
) -> Facts:
    """Write a training set to a file; return what it holds."""
    spine_file.check(output)
    on_step("checking the spine")
    found, wanted = made(access, spine, views, mode, time, outside, duplicates)
    on_step(f"{found.count:,} rows: computing their features, and writing")
    spine_file.write(found.rows, output)
    return {**found.facts(wanted), "output": str(output)}


def snapshot(access: Access, view: str, at: Moment) -> DataFrame:
    """Return what a view's gold answered at a time, for every key."""
    instant = moment(at, "at")
    access.session()
    return past_answers.snapshot(*of_view(access, view), instant, access.opening.clock)


def history(
    access: Access, view: str, keys: Iterable[Key], start: Moment, end: Moment
) -> DataFrame:
    """Return what a view's gold answered for some keys in a span of time."""
    span = (moment(start, "start"), moment(end, "end"))
    access.session()
    return past_answers.history(*of_view(access, view), keys, *span, access.opening.clock)


def audited(
    access: Access,
    view: str,
    store: str | None,
    sample: int,
    responses: Path | None,
    on_step: Callable[[str], None],
) -> Facts:
    """Compare online store, gold, recompute, training set and logged answers of some keys."""
    if sample < 1:
        raise UsageError(f"{sample} keys", where="sample", expected="at least 1")
    access.session()
    lake, declared = of_view(access, view)
    lake = lake.within(access.session())
    address = publication.address_of(lake, lake.pipeline.publish or Publishing(), store)
    facts = audit.audit(
        lake,
        declared,
        address,
        access.opening.clock,
        sample=sample,
        responses=responses,
        on_step=on_step,
    )
    kept_audits.keep(lake, facts, access.opening.clock.now())
    return {**facts, "store": address.url}
