"""What a pipeline's file may say of dimensions, and each mistake with its line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dimension_lakes import WORDS, declared
from tidemill.config.pipeline_file import read
from tidemill.errors import DefinitionError
from tidemill.lake import tables

CUSTOMER, ENRICH = WORDS["dimensions"][0], WORDS["enrich"][0]


def test_a_dimension_has_queries_and_tables_of_its_own() -> None:
    definition = declared()
    names = [query.checkpoint for query in definition.queries_of("buckets")]
    assert names == ["land", "land_customer", "dimension_customer", "clean", "feature"]
    required = [table.name for table in tables.of(definition).required]
    assert {"customer_bronze", "customer_quarantine", "customer_dimension"} <= set(required)
    assert definition.enriched == ["segment", "credit"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"dimensions": [CUSTOMER, CUSTOMER]}, "dimension 'customer' is declared twice"),
        (
            {"dimensions": [{**CUSTOMER, "keys": ["customer_id", "customer_id"]}]},
            "key 'customer_id' is declared twice",
        ),
        (
            {"dimensions": [{**CUSTOMER, "keys": ["customer"]}]},
            r"unknown column 'customer' in dimension customer.*customer_id",
        ),
        (
            {"dimensions": [{**CUSTOMER, "keys": ["segment"]}]},
            r"key 'segment' may not be absent: its type ends with \?",
        ),
        (
            {"dimensions": [{**CUSTOMER, "schema": {"customer_id": "string", "batch": "string"}}]},
            "column 'batch' of dimension customer is one of Tidemill's own names",
        ),
        ({"dimensions": [{**CUSTOMER, "name": "spending"}]}, "is called as the pipeline, a view"),
        ({"dimensions": [{**CUSTOMER, "format": "avro"}]}, "debezium"),
        ({"dimensions": [{**CUSTOMER, "histroy": "type2"}]}, "unknown word 'histroy'.*history"),
        ({"enrich": [{**ENRICH, "dimension": "custmer"}]}, "unknown dimension 'custmer'.*customer"),
        (
            {"enrich": [{**ENRICH, "keys": {"buyer": "segment"}}]},
            "takes each key of dimension customer once .customer_id., found segment",
        ),
        (
            {"enrich": [{**ENRICH, "keys": {"buyr": "customer_id"}}]},
            "the event has no column 'buyr'.*buyer",
        ),
        (
            {"enrich": [{**ENRICH, "keys": {"amount": "customer_id"}}]},
            "amount is bigint, key customer_id of dimension customer string",
        ),
        (
            {"enrich": [{**ENRICH, "columns": {"segment": "sgment"}}]},
            "dimension customer has no attribute 'sgment'.*segment",
        ),
        (
            {"enrich": [{**ENRICH, "columns": {"credit": "segment"}}]},
            r"credit is bigint\? in the schema of view spending, expected string\?",
        ),
        ({"enrich": [ENRICH, ENRICH]}, "enriched column .credit. is declared twice"),
        ({"enrich": [{**ENRICH, "refresh": "soon"}]}, "'soon' is no length of time"),
        ({"enrich": [{**ENRICH, "refresh": "2h"}]}, "refresh 2h is too long: at most 1h"),
    ],
)
def test_a_mistake_is_told_with_its_place(
    tmp_path: Path, words: dict[str, Any], message: str
) -> None:
    path = tmp_path / "purchases.yaml"
    path.write_text(yaml.safe_dump(json.loads(json.dumps({**WORDS, **words}))))
    with pytest.raises(DefinitionError, match=message) as caught:
        read(path)
    assert "purchases.yaml:" in str(caught.value)
