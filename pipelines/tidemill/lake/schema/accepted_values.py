"""Which values of a field the events table has taken from its beginning: `tidemill.allowed`.

A field that every view splits by, or that has `allowed` in the quality file, takes its values
alone; records with others are refused. A value that is declared later is taken from then on, but
its earlier records lie in quarantine: only `rebuild --from bronze` judges them again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import functions as F

from tidemill.features import FeatureView
from tidemill.lake.catalog import Lake
from tidemill.lake.provenance import DECLARED
from tidemill.lake.schema.table_properties import tell
from tidemill.lake.tables import ALLOWED

Values = Mapping[str, Sequence[str]]


def refused_value(lake: Lake, view: FeatureView) -> str:
    """Return, in words, a value that the view counts and of which records were refused because it
    was not declared then; empty for none."""
    taken = _taken(lake)
    for feature in view.features:
        field = str(feature.column)
        if field in taken and field in view.event_schema:
            later = [value for value in feature.values if value not in taken[field]]
            if value := _in_quarantine(lake, field, later):
                return (
                    f"records with {field} {value} are in quarantine, refused when it was unknown"
                )
    return ""


def settle(lake: Lake) -> None:
    """Have the events table say which values it has taken from its beginning, now that others may
    be declared."""
    before, declared = _taken(lake), lake.pipeline.allowed_values()
    after = {
        field: [v for v in values if v in before[field] or not _refused(lake, field, v)]
        if field in before
        else list(values)
        for field, values in declared.items()
    }
    lifted = (field for field in before if field not in declared)
    after |= {f: [*before[f]] for f in lifted if _in_quarantine(lake, f, None)}
    if {f: sorted(v) for f, v in after.items()} != {f: sorted(v) for f, v in before.items()}:
        tell(lake.spark, lake.tables.events.name, {ALLOWED: json.dumps(after)})


def _taken(lake: Lake) -> Values:
    """Return what the events table says; of a lake that does not, what its views declared last."""
    said = lake.metadata(lake.tables.events.name).properties
    if ALLOWED in said:
        values: Values = json.loads(said[ALLOWED])
        return values
    views = [_declared_last(lake, view) for view in lake.pipeline.views]
    return lake.pipeline.model_copy(update={"views": tuple(views)}).allowed_values()


def _declared_last(lake: Lake, view: FeatureView) -> FeatureView:
    said = lake.metadata(lake.tables.of(view).buckets.name).properties
    return FeatureView.model_validate(json.loads(said[DECLARED])) if DECLARED in said else view


def _refused(lake: Lake, field: str, value: str) -> bool:
    return _in_quarantine(lake, field, [value]) is not None


def _in_quarantine(lake: Lake, field: str, values: Iterable[str] | None) -> str | None:
    """Return one of the values, of any where None, of which a record was refused as unknown."""
    wanted = None if values is None else list(values)
    if wanted == []:
        return None
    rows = lake.spark.table(lake.tables.quarantine.name)
    rows = rows.where(F.array_contains("reasons", f"unknown_value:{field}"))
    value = F.get_json_object("raw_payload", f"$.{field}").alias("value")
    rows = rows.select(value)
    if wanted is not None:
        rows = rows.where(F.col("value").isin(wanted))
    row = rows.limit(1).collect()
    return str(row[0]["value"]) if row else None
