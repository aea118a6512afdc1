"""The schemas of a schema registry, by the ids that records name (Confluent's HTTP interface)."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidemill.errors import InputError, SourceError
from tidemill.features.windows import duration
from tidemill.sources.kafka.secrets import resolved
from tidemill.sources.kafka.words import PayloadSchema


@dataclass(frozen=True)
class Registry:
    """Where to ask, with the login of this process, and how many seconds an answer may take.

    It goes to Spark's workers, which do not have our environment.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    limit: float

    def asked(self, place: str) -> Any:
        """Return the answer to a path, None where the registry has no such thing; SourceError where
        it does not answer, or answers an error."""
        url = f"{self.url}/{place}"
        request = urllib.request.Request(url, headers=dict(self.headers))
        try:
            with urllib.request.urlopen(request, timeout=self.limit) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise _refused(url, error.code) from error
        except (OSError, ValueError) as error:
            why = getattr(error, "reason", error)
            raise SourceError(
                f"the schema registry does not answer: {why}", where=url, expected="one that does"
            ) from error


def of(schema: PayloadSchema, timeout: str) -> Registry:
    """Return the registry that a file's words name; UsageError for a password that is not set."""
    url = (schema.registry or "").rstrip("/")
    return Registry(url, _login(schema), duration(timeout).total_seconds())


def of_subjects(
    registry: Registry, schema: PayloadSchema, topics: Sequence[str]
) -> Iterator[tuple[int, str]]:
    """Yield id and text of each version of the subjects: the one named, else `<topic>-value` of
    each topic.

    SourceError where the registry does not answer, or answers an error; InputError where it has no
    such subject, or one that is not Avro.
    """
    subjects = [schema.subject] if schema.subject else [f"{topic}-value" for topic in topics]
    for subject in subjects:
        place = f"subjects/{urllib.parse.quote(subject, safe='')}/versions"
        for version in _known(registry, place):
            said = _known(registry, f"{place}/{version}")
            if said.get("schemaType", "AVRO") != "AVRO":
                raise InputError(
                    f"subject {subject} is {said['schemaType']}",
                    where="source.schema",
                    expected="an Avro subject; Protobuf takes a file",
                )
            yield int(said["id"]), str(said["schema"])


def of_id(registry: Registry, number: int) -> str | None:
    """Return the text of the schema of an id; None where the registry has none, or no Avro."""
    said = registry.asked(f"schemas/ids/{number}")
    if said is None or said.get("schemaType", "AVRO") != "AVRO":
        return None
    return str(said["schema"])


def _known(registry: Registry, place: str) -> Any:
    said = registry.asked(place)
    if said is None:
        where = f"{registry.url}/{place}"
        raise InputError("the registry has no such subject", where=where, expected="source.schema")
    return said


def _refused(url: str, code: int) -> SourceError:
    expected = "a registry that answers" if code >= 500 else "a login that the registry knows"
    return SourceError(f"the schema registry answers {code}", where=url, expected=expected)


def _login(schema: PayloadSchema) -> dict[str, str]:
    if not (schema.username and schema.password):
        return {}
    said = f"{schema.username}:{resolved(schema.password, 'source.schema.password')}"
    return {"Authorization": f"Basic {base64.b64encode(said.encode()).decode()}"}
