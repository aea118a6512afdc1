"""A message to an address, as Standard Webhooks have it: three headers and a JSON body.

    webhook-id          the same each time that a message is sent
    webhook-timestamp   seconds since 1970, when it is sent
    webhook-signature   v1,BASE64(HMAC-SHA256(secret, "ID.TIMESTAMP.BODY")), with a secret

A secret that begins with whsec_ is base64, any other one its own bytes. Specification:
https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import http.client
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any

from tidemill.errors import UsageError

PREFIX = "whsec_"
_LATER = (408, 425, 429)  # with 5xx: the same message may be taken another time


@dataclass(frozen=True)
class Reply:
    """What an address said: whether it has the message, whether it may take it `later`, and after
    how many seconds at least, where it says so."""

    taken: bool
    text: str
    later: bool = False
    wait: float = 0.0


def key_of(secret: str, where: str) -> bytes:
    """Return the bytes that a secret signs with; UsageError for a whsec_ that is no base64."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        expected = f"{PREFIX} and base64"
        raise UsageError("the secret cannot be read", where=where, expected=expected) from None


def signature(key: bytes, message_id: str, seconds: int, body: bytes) -> str:
    """Return the signature of a message."""
    signed = hmac.new(key, b"%s.%d.%s" % (message_id.encode(), seconds, body), hashlib.sha256)
    return f"v1,{base64.b64encode(signed.digest()).decode()}"


def post(url: str, key: bytes | None, message_id: str, body: bytes, timeout: float) -> Reply:
    """Send a message once. A redirection is not followed: it counts as a refusal."""
    now = int(time.time())
    headers = {
        "content-type": "application/json",
        "user-agent": "tidemill",
        "webhook-id": message_id,
        "webhook-timestamp": str(now),
    }
    if key is not None:
        headers["webhook-signature"] = signature(key, message_id, now, body)
    request = urllib.request.Request(url, body, headers, method="POST")
    try:
        with _OPENER.open(request, timeout=timeout) as answer:
            return Reply(taken=True, text=f"HTTP {answer.status}")
    except urllib.error.HTTPError as error:
        with error:
            later = error.code >= 500 or error.code in _LATER
            return Reply(False, f"HTTP {error.code}", later, _asked(error.headers))
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return Reply(False, f"{reason}" or type(error).__name__, later=True)


def _asked(headers: Message) -> float:
    """Return the seconds that Retry-After asks for; a date is not looked at."""
    said = headers.get("retry-after", "")
    return float(said) if said.isdecimal() else 0.0


class _Stays(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: a signed message goes to the address that was named."""

    def redirect_request(
        self, req: Any, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> None:
        """Return nothing, so that the answer is an error."""


_OPENER = urllib.request.build_opener(_Stays)
