"""Secrets of a source: named in a pipeline's file, kept in the environment, never printed."""

from __future__ import annotations

import os
import re
from typing import Annotated

from pydantic import AfterValidator, Field

from tidemill.errors import UsageError

_REFERENCE = re.compile(r"\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}")


def is_reference(text: str) -> bool:
    """Return whether a text names a variable, and is no secret itself."""
    return _REFERENCE.fullmatch(text) is not None


def _named(text: str) -> str:
    """Refuse a secret that stands in the file itself; the message does not repeat it."""
    if not is_reference(text):
        raise ValueError("a secret does not stand in a pipeline's file: write ${env:NAME}")
    return text


Secret = Annotated[str, AfterValidator(_named), Field(pattern=r"^\$\{env:\w+\}$")]
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
