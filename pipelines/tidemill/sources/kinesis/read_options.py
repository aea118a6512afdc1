"""The options of the data source: what `spark.readStream.format("kinesis_py")` takes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from tidemill.errors import InputError
from tidemill.features.suggestions import did_you_mean
from tidemill.features.types import bytes_of, is_size
from tidemill.sources.kinesis.refusals import StreamAddress
from tidemill.sources.kinesis.shard_offset import TRIM_HORIZON

LATEST = "LATEST"
MOST_RECORDS, MOST_BYTES = 500_000, "256m"
_BEGINS = {"trim_horizon": TRIM_HORIZON, "earliest": TRIM_HORIZON, "latest": LATEST}
_NAMES = (
    "streamName",
    "region",
    "endpointUrl",
    "initialPosition",
    "maxRecordsPerTrigger",
    "maxBytesPerTrigger",
    "failOnDataLoss",
)


@dataclass(frozen=True)
class ReadOptions:
    """What to read of a stream, from where, and how much in a batch.

    `starting_position` is TRIM_HORIZON, LATEST or a time in ISO format; it holds for a new query,
    one with a checkpoint goes on where that stands.
    """

    address: StreamAddress
    starting_position: str = TRIM_HORIZON
    max_records: int = MOST_RECORDS
    max_bytes: int = bytes_of(MOST_BYTES)
    fail_on_data_loss: bool = True

    def to_spark(self) -> dict[str, str]:
        """Return the options as Spark takes them."""
        options = {
            "streamName": self.address.stream,
            "region": self.address.region,
            "endpointUrl": self.address.endpoint,
            "initialPosition": self.starting_position,
            "maxRecordsPerTrigger": str(self.max_records),
            "maxBytesPerTrigger": str(self.max_bytes),
            "failOnDataLoss": str(self.fail_on_data_loss).lower(),
        }
        return {name: value for name, value in options.items() if value is not None}

    @staticmethod
    def of(options: Mapping[str, str]) -> ReadOptions:
        """Return what the options say, their names in any case; InputError for one that is unknown
        or wrong."""
        said = {name.lower(): value for name, value in options.items() if name.lower() != "path"}
        unknown = sorted(said.keys() - {name.lower() for name in _NAMES})
        if unknown:
            hint = did_you_mean(unknown[0], _NAMES)
            raise _wrong(f"unknown option {unknown[0]!r}{hint}", ", ".join(_NAMES))
        if not said.get("streamname"):
            raise _wrong("no stream is named", "option streamName")
        return ReadOptions(
            StreamAddress(said["streamname"], said.get("region"), said.get("endpointurl")),
            _position(said.get("initialposition", "trim_horizon")),
            _number("maxRecordsPerTrigger", said, str(MOST_RECORDS)),
            _number("maxBytesPerTrigger", said, MOST_BYTES),
            _flag(said.get("failondataloss", "true")),
        )


def _position(text: str) -> str:
    if text.lower() in _BEGINS:
        return _BEGINS[text.lower()]
    try:
        has_zone = datetime.fromisoformat(text.replace("Z", "+00:00")).tzinfo is not None
    except ValueError:
        has_zone = False
    if not has_zone:
        expected = "trim_horizon, latest, or a time with its zone, such as 2026-11-21T10:05:00Z"
        raise _wrong(f"initialPosition is {text!r}", expected)
    return text


def _number(name: str, said: Mapping[str, str], default: str) -> int:
    text = said.get(name.lower(), default)
    try:
        number = int(text) if text.isdigit() else bytes_of(is_size(text))
    except ValueError:
        number = 0
    if number < 1:
        raise _wrong(f"{name} is {text!r}", "a number of 1 or more, of bytes also such as 64m")
    return number


def _flag(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise _wrong(f"failOnDataLoss is {text!r}", "true or false")
    return text.lower() == "true"


def _wrong(found: str, expected: str) -> InputError:
    return InputError(found, where="kinesis_py", expected=expected)
