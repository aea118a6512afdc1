"""Where a pipeline's alerts are sent to, as its file says it."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from tidemill.config.yaml_loader import Declared
from tidemill.features.types import Duration
from tidemill.sources.kafka.secrets import Secret, is_reference
from tidemill.sources.kafka.words import KafkaSink


def _address(text: str) -> str:
    """Accept a web address, or the name of the variable that holds one."""
    if is_reference(text):
        return text
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{text!r} is no address: write https://..., or ${{env:NAME}}")
    if parts.password or parts.username:
        raise ValueError("a secret does not stand in a pipeline's file: write ${env:NAME}")
    return text


class AlertTopic(KafkaSink):
    """A topic that gets the alerts of `every` so long together."""

    every: Duration = "10s"


class Webhook(Declared):
    """An address to which each alert is posted, with a signature where there is a secret.

    An address that is a secret itself is named, `${env:NAME}`. It has `timeout` to answer.
    """

    url: Annotated[str, AfterValidator(_address)]
    secret: Secret | None = None
    timeout: Duration = "10s"


class AlertSinks(Declared):
    """Where alerts are sent to, beside their table."""

    kafka: AlertTopic | None = None
    webhook: Webhook | None = None
