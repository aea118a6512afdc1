"""Records whose schema the registry got after the stream began: asked for when one is seen.

    id ──known here?──► decoder
       ──no───────────► GET schemas/ids/<id> ──► decoder, kept
                                             ──► none: the record stays base64, asked again later

It runs in Spark's Python workers, each of which asks for itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tidemill.sources.kafka import avro, schema_registry
from tidemill.sources.kafka.schema_registry import Registry

HEADER = 5
ASK_AGAIN = 5.0  # seconds after which an id that the registry did not have is asked for again
MOST_UNKNOWN = 10_000  # ids remembered as unknown: garbage has as many as there are numbers
Decode = Callable[[bytes], str | None]
_decoders: dict[tuple[str, int], Decode] = {}
_unknown: dict[tuple[str, int], float] = {}  # when the registry said so


def decoder(registry: Registry) -> Callable[[bytes | None], str | None]:
    """Return what makes JSON of a record with Confluent's header, by the schema of its id; None of
    one that is no such record, or whose id the registry does not know.

    It raises SourceError where the registry does not answer or answers an error: what it would have
    said of the schema is not known, so the batch fails, and is read again by the next run.
    """

    def decode(value: bytes | None) -> str | None:
        if value is None:
            return None
        read = _of_id(registry, int.from_bytes(value[1:HEADER], "big"))
        return read(bytes(value[HEADER:])) if read else None

    return decode


def _of_id(registry: Registry, number: int) -> Decode | None:
    key = registry.url, number
    if key in _decoders:
        return _decoders[key]
    if time.monotonic() - _unknown.get(key, float("-inf")) < ASK_AGAIN:
        return None
    text = schema_registry.of_id(registry, number)
    try:
        if text is not None:
            return _decoders.setdefault(key, avro.decoder(text))
    except ValueError:  # a text that is no schema: as unknown as none
        pass
    if len(_unknown) >= MOST_UNKNOWN:
        _unknown.clear()
    _unknown[key] = time.monotonic()
    return None
