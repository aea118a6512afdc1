"""The SQL of dashboards and alerts, run on a lake with nothing in it.

The lake is made by the ordinary code, so its tables and views are those that a job would make. What
is empty has all its columns: an unknown table, column or function fails here as it would there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidemill.config.pipeline_file import load
from tidemill.config.settings import Clock, Place
from tidemill.config.yaml_values import Steps
from tidemill.databricks.bundle import writers
from tidemill.databricks.bundle.document import Document, read
from tidemill.databricks.bundle.issue import Finding
from tidemill.databricks.bundle.named_files import dashboards
from tidemill.databricks.bundle.project import Bundle, Resource, items, mapping
from tidemill.databricks.bundle.references import Target
from tidemill.errors import UsageError
from tidemill.features.suggestions import did_you_mean
from tidemill.query.questions import read_only

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Asked:
    """What a statement yields, or why it does not run and in which of its lines."""

    text: str
    columns: tuple[str, ...] = ()
    wrong: str | None = None
    line: int = 1


def check_in_new_lake(
    bundle: Bundle, root: Path, memory: str | None, verbose: bool
) -> list[Finding]:
    """Return what is wrong with SQL, asked of an empty lake that is made for it in a new folder."""
    from tidemill.pipeline.connection import Opening, held_lake

    opening = Opening(Place(root), Clock(), 0.0, memory, verbose)
    spark = opening.session()
    for name in writers.pipelines(bundle):
        held_lake(spark, opening, load(name))
    findings = check(bundle, spark)
    spark.sql(f"DROP SCHEMA {spark.catalog.currentDatabase()} CASCADE")
    spark.catalog.setCurrentDatabase("default")
    return findings


def check(bundle: Bundle, spark: SparkSession) -> list[Finding]:
    """Return what is wrong with the SQL of dashboards and alerts, asked of the lake whose schema is
    the session's current one."""
    here = {
        "catalog": spark.catalog.currentCatalog(),
        "schema": spark.catalog.currentDatabase(),
    }
    target = Target(bundle, bundle.default_target, here)
    findings = [*_alerts(bundle, spark, target), *_dashboards(bundle, spark, target)]
    return sorted(set(findings), key=lambda f: (f.file, f.line, f.message))


def _alerts(bundle: Bundle, spark: SparkSession, target: Target) -> Iterator[Finding]:
    for alert in bundle.of("alerts"):
        asked = ask(spark, str(target.resolved(alert.value.get("query_text", ""))))
        if asked.wrong:
            yield alert.finding(("query_text",), asked.wrong)
            continue
        evaluation = mapping(alert.value, "evaluation")
        for steps in (("source",), ("threshold", "column")):
            name = mapping(evaluation, *steps).get("name")
            if name is not None and name not in asked.columns:
                message = f"the query yields no {name!r}{did_you_mean(str(name), asked.columns)}"
                yield alert.finding(("evaluation", *steps, "name"), message)


def _dashboards(bundle: Bundle, spark: SparkSession, target: Target) -> Iterator[Finding]:
    for resource, file in dashboards(bundle):
        yield from _datasets_are_ours(resource, target)
        document = read(bundle.folder, file)
        yield from document.findings
        known: dict[str, Asked] = {}
        for number, dataset in items(document.value, "datasets"):
            text, steps = _text(dataset)
            asked = ask(spark, text)
            known[str(dataset.get("name"))] = asked
            if asked.wrong:
                part = (*steps, asked.line - 1) if steps[0] == "queryLines" else steps
                yield document.finding(("datasets", number, *part), asked.wrong)
        for steps, widget in _widgets(document):
            yield from _widget(document, steps, widget, known, spark)


def _datasets_are_ours(resource: Resource, target: Target) -> Iterator[Finding]:
    """A dashboard names tables plainly, so the resource says where they are."""
    for field, name in (("dataset_catalog", "catalog"), ("dataset_schema", "schema")):
        if target.resolved(resource.value.get(field)) != target.given[name]:
            message = f"dashboard {resource.key!r} does not look into the lake's {name}"
            yield resource.finding((field,), message, f"${{var.{name}}}")


def _text(dataset: Mapping[str, Any]) -> tuple[str, Steps]:
    lines = dataset.get("queryLines")
    if isinstance(lines, list):
        return "".join(map(str, lines)), ("queryLines",)
    return str(dataset.get("query", "")), ("query",)


def _widgets(document: Document) -> Iterator[tuple[Steps, Mapping[str, Any]]]:
    for page, each in items(document.value, "pages"):
        for number, place in items(each, "layout"):
            yield ("pages", page, "layout", number, "widget"), mapping(place, "widget")


def _widget(
    document: Document,
    at: Steps,
    widget: Mapping[str, Any],
    known: Mapping[str, Asked],
    spark: SparkSession,
) -> Iterator[Finding]:
    """Yield what is wrong with a widget: its dataset, its fields' expressions, what it draws."""
    fields: list[str] = []
    for number, query in items(widget, "queries"):
        steps = (*at, "queries", number, "query")
        said = mapping(query, "query")
        dataset = str(said.get("datasetName"))
        fields += [str(field.get("name")) for _, field in items(said, "fields")]
        if dataset not in known:
            message = f"there is no dataset {dataset!r}{did_you_mean(dataset, known)}"
            yield document.finding((*steps, "datasetName"), message)
            continue
        for place, field in items(said, "fields"):
            if wrong := _expression(spark, str(field.get("expression")), known[dataset]):
                yield document.finding((*steps, "fields", place, "expression"), wrong)
    for steps, name in document_names(mapping(widget, "spec", "encodings")):
        if name not in fields:
            message = f"the widget asks for no {name!r}{did_you_mean(name, fields)}"
            yield document.finding((*at, "spec", "encodings", *steps), message)


def document_names(value: Any, steps: Steps = ()) -> Iterator[tuple[Steps, str]]:
    """Yield every `fieldName` in what a widget draws, with the steps to it."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            if key == "fieldName":
                yield (*steps, key), str(part)
            yield from document_names(part, (*steps, key))
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from document_names(part, (*steps, number))


def _expression(spark: SparkSession, expression: str, dataset: Asked) -> str | None:
    """Return what is wrong with a widget's expression over its dataset; it is analysed, not run."""
    if dataset.wrong:
        return None
    return ask(spark, f"SELECT {expression} FROM (\n{dataset.text}\n)", run=False).wrong


def ask(spark: SparkSession, text: str, *, run: bool = True) -> Asked:
    """Return what a statement answers with, or why it does not."""
    from pyspark.errors import PySparkException

    try:
        frame = spark.sql(read_only(text))
        if run:
            frame.collect()
        return Asked(text, tuple(frame.columns))
    except UsageError as error:
        return Asked(text, wrong=error.message)
    except PySparkException as error:
        first = str(error).strip().splitlines()[0]
        at = re.search(r"\bline (\d+)", str(error))
        return Asked(text, wrong=first, line=int(at[1]) if at else 1)
