"""The gate: validates tables as checkpoints of Great Expectations, and writes Data Docs.

    assets ──checkpoint each──► results ──► checks, told plainly
                                       └──► Data Docs, HTML, in the folder named

The context is made for one run and kept in memory: nothing is written but the docs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from tidemill.errors import RunError
from tidemill.quality.expectations import Expectation, gx
from tidemill.quality.suites import Asset

EXAMPLES = 3
SITE = "tidemill"


@dataclass(frozen=True)
class Check:
    """What was expected of a table and what was found; `examples` are keys of unexpected rows,
    `value` the number found where the check is of one."""

    table: str
    check: str
    ok: bool
    expected: str
    found: str
    value: float | None
    unexpected: int
    examples: Sequence[dict[str, Any]]


def validated(frame: DataFrame, suite: Sequence[Expectation], key: Sequence[str]) -> list[Any]:
    """Return Great Expectations' results of one frame, with the key of every unexpected row."""
    whole = {"result_format": "COMPLETE", "unexpected_index_column_names": [*key]}
    return _run(_context(), Asset("records", frame, suite, tuple(key)), "", whole)


def checked(assets: Iterable[Asset], run: str, docs: Path | None) -> list[Check]:
    """Validate every asset; write Data Docs of the run into `docs`, where given."""
    context, checks = _context(), []
    if docs is not None:
        from tidemill.quality.data_docs import site  # Great Expectations is an extra

        context.add_data_docs_site(SITE, site(docs))
    for asset in assets:
        wanted = {
            "result_format": "SUMMARY",
            "unexpected_index_column_names": [*asset.key],
            "partial_unexpected_count": EXAMPLES,
        }
        with kept(asset.frame):
            checks += [_check(asset, result) for result in _run(context, asset, run, wanted)]
    if docs is not None:
        context.build_data_docs(site_names=[SITE])
    return checks


@contextmanager
def kept(frame: DataFrame) -> Iterator[None]:
    """Keep a frame while it is read more than once, where the compute can: serverless cannot."""
    try:
        frame.persist()
    except PySparkException as error:
        if "SERVERLESS" not in (error.getCondition() or str(error)):
            raise
        yield
        return
    try:
        yield
    finally:
        frame.unpersist()


def _context() -> Any:
    logging.getLogger("great_expectations").setLevel(logging.ERROR)
    context = gx().get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    for site in [*context.get_site_names()]:
        context.delete_data_docs_site(site)
    return context


def _run(context: Any, asset: Asset, run: str, wanted: dict[str, Any]) -> list[Any]:
    """Run a checkpoint over one asset."""
    great = gx()
    source = context.data_sources.add_spark(asset.name, persist=False)
    batch = source.add_dataframe_asset(asset.name).add_batch_definition_whole_dataframe("rows")
    suite = context.suites.add(great.ExpectationSuite(asset.name, expectations=asset.expectations))
    validation = context.validation_definitions.add(
        great.ValidationDefinition(name=asset.name, data=batch, suite=suite)
    )
    if not asset.key:
        wanted = {"result_format": "SUMMARY"}
    checkpoint = context.checkpoints.add(
        great.Checkpoint(name=asset.name, validation_definitions=[validation], result_format=wanted)
    )
    checkpoint_result = checkpoint.run(
        batch_parameters={"dataframe": asset.frame},
        run_id=great.RunIdentifier(run_name=run or None),
    )
    return [result for each in checkpoint_result.run_results.values() for result in each.results]


def _check(asset: Asset, result: Any) -> Check:
    config, details = result.expectation_config, result.result
    _refuse_broken(asset, result)
    value = details.get("observed_value")
    unexpected = int(details.get("unexpected_count") or 0)
    rows = f"{unexpected} unexpected of {details.get('element_count', 0)}"
    examples = details.get("partial_unexpected_index_list") or []
    return Check(
        table=asset.name,
        check=config.meta["reason"],
        ok=bool(result.success),
        expected=_words(config),
        found=rows if value is None else f"{value:g}",
        value=None if value is None else float(value),
        unexpected=unexpected if value is None else int(not result.success),
        examples=[{name: row[name] for name in asset.key} for row in examples[:EXAMPLES]],
    )


def _refuse_broken(asset: Asset, result: Any) -> None:
    """Raise what stopped an expectation: a check that could not be made is no failed check."""
    raised = result.exception_info or {}
    each = [raised] if "raised_exception" in raised else raised.values()
    for one in each:
        if one["raised_exception"]:
            raise RunError(
                f"could not be checked: {one['exception_message']}",
                where=f"{asset.name}, {result.expectation_config.meta['reason']}",
            )


def _words(config: Any) -> str:
    """Return an expectation as a sentence: its type's words, and what it was given."""
    left_out = ("batch_id", "ignore_row_if", "condition_parser", "severity")
    given = {n: v for n, v in config.kwargs.items() if n not in left_out and v is not None}
    words = config.type.removeprefix("expect_").replace("_", " ")
    return f"{words}: {', '.join(f'{name} {value}' for name, value in given.items())}"
