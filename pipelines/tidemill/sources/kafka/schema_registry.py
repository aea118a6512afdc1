"""The schemas of a schema registry, by the ids that records name (Confluent's HTTP interface)."""

from __future__ import annotations

import base64
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from typing import Any

from tidemill.errors import InputError, SourceError
from tidemill.features.windows import duration
from tidemill.sources.kafka.secrets import resolved
from tidemill.sources.kafka.words import PayloadSchema


def of_subjects(
    schema: PayloadSchema, topics: Sequence[str], timeout: str
) -> Iterator[tuple[int, str]]:
    """Yield id and text of each version of the subjects: the one named, else `<topic>-value` of
    each topic.

    SourceError where the registry does not answer, or answers an error; InputError where it has no
    such subject, or one that is not Avro.
    """
    limit = duration(timeout).total_seconds()
    subjects = [schema.subject] if schema.subject else [f"{topic}-value" for topic in topics]
    for subject in subjects:
        place = f"subjects/{urllib.parse.quote(subject, safe='')}/versions"
        for version in _asked(schema, place, limit):
            said = _asked(schema, f"{place}/{version}", limit)
            if said.get("schemaType", "AVRO") != "AVRO":
                raise InputError(
                    f"subject {subject} is {said['schemaType']}",
                    where="source.schema",
                    expected="an Avro subject; Protobuf takes a file",
                )
            yield int(said["id"]), str(said["schema"])


def _asked(schema: PayloadSchema, place: str, limit: float) -> Any:
    url = f"{(schema.registry or '').rstrip('/')}/{place}"
    request = urllib.request.Request(url, headers=_login(schema))
    try:
        with urllib.request.urlopen(request, timeout=limit) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise _refused(url, error.code) from error
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", error)
        raise SourceError(
            f"the schema registry does not answer: {why}", where=url, expected="one that does"
        ) from error


def _refused(url: str, code: int) -> InputError | SourceError:
    if code == 404:
        return InputError("the registry has no such subject", where=url, expected="source.schema")
    expected = "a registry that answers" if code >= 500 else "a login that the registry knows"
    return SourceError(f"the schema registry answers {code}", where=url, expected=expected)


def _login(schema: PayloadSchema) -> dict[str, str]:
    if not (schema.username and schema.password):
        return {}
    said = f"{schema.username}:{resolved(schema.password, 'source.schema.password')}"
    return {"Authorization": f"Basic {base64.b64encode(said.encode()).decode()}"}
