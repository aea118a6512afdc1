"""Secrets of a source: named in a pipeline's file, kept in the environment, never printed."""

from __future__ import annotations

import os
import re
from typing import Annotated

from pydantic import AfterValidator, Field

from tidemill.errors import UsageError

_REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def _is_reference(text: str) -> str:
    """Refuse a secret that stands in the file itself; the message does not repeat it."""
    if not _REFERENCE.fullmatch(text):
        raise ValueError("a secret does not stand in a pipeline's file: write ${env:NAME}")
    return text


Secret = Annotated[str, AfterValidator(_is_reference), Field(pattern=r"^\$\{env:\w+\}$")]
"""`${env:NAME}`: what the environment variable NAME holds when the pipeline runs."""


def resolved(secret: str, where: str) -> str:
    """Return what the secret's variable holds; UsageError where it is not set or empty."""
    name = _REFERENCE.sub(r"\1", secret)
    value = os.environ.get(name)
    if not value:
        raise UsageError(
            f"the environment variable {name} is not set", where=where, expected=f"{name}=..."
        )
    return value
