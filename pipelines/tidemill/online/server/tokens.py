"""Who may ask: a bearer token from the environment, compared in constant time.

    bound to          token set    no token
    127.0.0.1, ::1    asked for    anybody on this machine, by a name of this machine only
    elsewhere         asked for    refused at start

Without a token the Host header must name the loopback address: a page in a browser on this machine
could otherwise reach the server by a name that its owner lets point here (DNS rebinding).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass

from tidemill.errors import UsageError

LEAST = 16  # letters of a token
_LOOPBACK_NAMES = {"localhost", "127.0.0.1", "[::1]"}
_SCHEME = b"bearer "


@dataclass(frozen=True, repr=False)
class Tokens:
    """The tokens that open the API, as their hashes; none opens it to this machine alone."""

    digests: tuple[bytes, ...] = ()

    @classmethod
    def from_environment(
        cls, name: str, host: str, environment: Mapping[str, str] = os.environ
    ) -> Tokens:
        """Return the tokens in a variable, several (old and new, while they are replaced) apart by
        blanks; UsageError where there is none and the server is bound to a network."""
        tokens = environment.get(name, "").split()
        if any(len(token) < LEAST for token in tokens):
            raise UsageError(
                f"a token in {name} is shorter than {LEAST} letters",
                where=name,
                expected='such as `python -c "import secrets; print(secrets.token_urlsafe(32))"`',
            )
        if not tokens and not is_loopback(host):
            raise UsageError(
                f"{host} can be reached from other machines, and no token is set",
                where="--host",
                expected=f"a token in the environment variable {name}, or --host 127.0.0.1",
            )
        return cls(tuple(_digest(token.encode()) for token in tokens))

    def admits(self, authorization: bytes) -> bool:
        """Return whether an Authorization header holds one of the tokens. Every token is compared,
        as hashes of equal length, so that the time says nothing of them."""
        if not self.digests:
            return True
        known = authorization[: len(_SCHEME)].lower() == _SCHEME
        given = _digest(authorization[len(_SCHEME) :].strip())
        matches = [hmac.compare_digest(given, digest) for digest in self.digests]
        return known and any(matches)

    def takes_host(self, host: bytes) -> bool:
        """Return whether the Host header may be what it is."""
        if self.digests or not host:
            return True
        text = host.decode("latin-1").lower()
        name = text[: text.find("]") + 1] if text.startswith("[") else text.partition(":")[0]
        return name in _LOOPBACK_NAMES


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a server bound to the host."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
