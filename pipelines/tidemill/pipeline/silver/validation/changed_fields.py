"""Refusals that say that a source's schema has changed: a field of another type, one that is gone.

refused: {"wrong_type:amount": 3} ──ledger──► expected: {"amount": "double"} ──► alarms
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from tidemill.pipeline.silver.validation.record import Field

FAULTS = ("missing", "wrong_type")


def expected(refused: Iterable[str], fields: Iterable[Field]) -> dict[str, str]:
    """Return the declared types of the fields that records were refused for, as they lacked them or
    had them with another type; one that is not required ends with `?`."""
    types = {field.name: field.type + ("" if field.required else "?") for field in fields}
    named = sorted({field for reason in refused for _, field in _parts(reason)})
    return {field: types[field] for field in named if field in types}


def faults(
    refused: Mapping[str, int], types: Mapping[str, str]
) -> Iterator[tuple[str, str, str, int]]:
    """Yield fault, field, expected type and number of records, as a batch's ledger says them."""
    for reason, records in refused.items():
        for fault, field in _parts(reason):
            if field in types:
                yield fault, field, types[field], records


def _parts(reason: str) -> Iterator[tuple[str, str]]:
    fault, _, field = reason.partition(":")
    if fault in FAULTS and field:
        yield fault, field
