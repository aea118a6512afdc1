"""Rows with the score that a model gives them, by a function that Spark runs over Arrow batches."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import pandas_udf

from tidemill.config.alert_rule import SCORE, AlertRule
from tidemill.errors import ModelError, TidemillError
from tidemill.pipeline.alerts.scoring.loaded_model import loaded
from tidemill.pipeline.alerts.scoring.model_version import ModelVersion

_ASKED = "__asked"


def with_score(
    rows: DataFrame, rule: AlertRule, version: ModelVersion, types: Mapping[str, str]
) -> DataFrame:
    """Return the rows with the model's number as `score`: null where the row is none of gold's, or
    an input is null (but for `nulls: pass`), or the model gives no number.

    `types` are those of the inputs; a decimal goes in as a double. Asked for rows, Spark fails with
    ModelError's text where the model does.
    """
    inputs, output, uri = rule.features, rule.output, rule.model

    def score(batch: pd.DataFrame) -> pd.Series:
        asked = batch[_ASKED].to_numpy(bool)
        found = pd.Series([None] * len(batch), dtype="float64")
        if asked.any():
            try:
                predict = loaded(version, inputs, output)
                found[asked] = predict(batch.loc[asked, list(inputs)])
            except TidemillError as error:
                raise ModelError(error.message, where=str(uri)) from error
            except Exception as error:  # a model's code may raise anything
                said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
                raise ModelError(f"failed: {said}", where=str(uri)) from error
        return found

    wanted = F.col("kind") == "row"
    if rule.nulls == "skip":
        for name in inputs:
            wanted &= F.col(name).isNotNull()
    columns = [
        F.col(name).cast("double").alias(name) if _is_decimal(types[name]) else F.col(name)
        for name in inputs
    ]
    given = F.struct(*columns, F.coalesce(wanted, F.lit(False)).alias(_ASKED))
    # PySpark's types know no function of a struct's DataFrame
    found = pandas_udf(score, "double")(given)  # type: ignore[call-overload]
    return rows.withColumn(SCORE, F.nanvl(found, F.lit(None).cast("double")))


def _is_decimal(type_: str) -> bool:
    return type_.upper().startswith("DECIMAL")
