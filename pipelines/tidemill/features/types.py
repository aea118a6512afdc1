"""Names, lengths of time and sizes as a declaration may say them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema
from pydantic.json_schema import JsonSchemaValue

from tidemill.errors import DefinitionError
from tidemill.features.windows import duration

RESERVED = frozenset(
    "record_id raw_payload topic partition offset source_ts ingested_at ingest_date reasons "
    "event_id event_hour batch duplicate bucket_start bucket_hour bucket_day updated_at "
    "as_of true false null".split()
)
# What is said of an answer beside its keys and features: no key, where answers are kept or read.
OF_ANSWERS = frozenset("kind begins version served_at served_day".split())
BIGINTS = range(-(2**63), 2**63)  # what a BIGINT holds
_SIZE = re.compile(r"[1-9][0-9]{0,8}[kmg]")
_TYPE = re.compile(r"(string|bigint|double|boolean|decimal\((\d{1,2}), ?(\d{1,2})\))(\??)")


def identifier(text: str) -> str:
    """Return `text` when it is a plain lower- or mixed-case SQL identifier of at most 128
    letters."""
    plain = text.isascii() and text.isidentifier() and len(text) <= 128
    if not plain or text.startswith("__"):
        raise ValueError(f"{text!r} is not an identifier (letters, digits and _)")
    return text


def is_duration(text: str) -> str:
    """Return `text` when it names a length of time."""
    try:
        duration(text)
    except DefinitionError as error:
        raise ValueError(str(error)) from error
    return text


def is_size(text: str) -> str:
    """Return `text` when it names a number of bytes."""
    if not _SIZE.fullmatch(text):
        raise ValueError(f"{text!r} is not a size: a whole number of k, m or g, such as 128m")
    return text


def bytes_of(size: str) -> int:
    """Return the number of bytes that a size such as `128m` names."""
    power: int = "kmg".index(size[-1]) + 1
    return int(size[:-1]) << 10 * power


def column_type(text: str) -> str:
    """Return `text` when it names a column's type; `?` at its end says that it may be absent."""
    match = _TYPE.fullmatch(text)
    if not match or (match[2] and not 1 <= int(match[2]) <= 18):
        raise ValueError(
            f"unknown type {text!r}: string, bigint, double, boolean or decimal(18, 2) with at "
            "most 18 digits, and ? at its end where the column may be absent"
        )
    if match[3] and int(match[3]) > int(match[2]):
        raise ValueError(f"{text!r} has more digits after the point than in all")
    return text.replace(", ", ",")


def _text(what: str, pattern: str) -> JsonSchemaValue:
    """Return what an editor is told of a text; the validators say more when a file is read."""
    return {"type": "string", "description": what, "pattern": f"^{pattern}$"}


NAME_SCHEMA = _text("a name of letters, digits and _", "(?!__)[A-Za-z_][A-Za-z0-9_]{0,127}")
LENGTH_SCHEMA = _text("a length of time such as 60s or 12h", "[0-9]{1,9}[smhd]")
SIZE_SCHEMA = _text("a number of bytes such as 64k, 128m or 1g", _SIZE.pattern)
TYPE_SCHEMA = _text(
    "string, bigint, double, boolean or decimal(18, 2); ? at its end: may be absent", _TYPE.pattern
)
Identifier = Annotated[str, AfterValidator(identifier), WithJsonSchema(NAME_SCHEMA)]
Duration = Annotated[str, AfterValidator(is_duration), WithJsonSchema(LENGTH_SCHEMA)]
Size = Annotated[str, AfterValidator(is_size), WithJsonSchema(SIZE_SCHEMA)]
ColumnType = Annotated[str, AfterValidator(column_type), WithJsonSchema(TYPE_SCHEMA)]
