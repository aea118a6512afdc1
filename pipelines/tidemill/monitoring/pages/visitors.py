"""Who may see the pages: whoever has the token, on this machine anybody; and that a form is ours.

    GET /login ──token──► POST /login ──► a cookie with a random name for the visitor
    page ──► forms with a guard, made of the cookie and a secret of this process

The cookie holds no token, is not sent by other sites, and no script can read it. A form whose guard
is not the one of its visitor was not on a page of ours, and does nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

from tidemill.online.server.tokens import Tokens

COOKIE = "tidemill_visitor"
_MOST = 1_000  # visitors who are remembered; the first ones log in again


@dataclass
class Visitors:
    """The visitors of one process."""

    tokens: Tokens
    _secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    _known: dict[str, None] = field(default_factory=dict, repr=False)

    def admits(self, cookie: str, authorization: bytes) -> bool:
        """Return whether a request may be answered: nobody needs a token where none is set."""
        return cookie in self._known or self.tokens.admits(authorization)

    def welcome(self, token: str) -> str | None:
        """Return the cookie of a new visitor; None where the token is not one of ours."""
        if not self.tokens.admits(b"Bearer " + token.encode()):
            return None
        cookie = secrets.token_urlsafe(32)
        self._known[cookie] = None
        while len(self._known) > _MOST:
            del self._known[next(iter(self._known))]
        return cookie

    def guard(self, cookie: str) -> str:
        """Return what goes with each form of this visitor."""
        return hmac.new(self._secret, cookie.encode(), hashlib.sha256).hexdigest()

    def guards(self, cookie: str, given: str) -> bool:
        """Return whether a form was on a page that this visitor got."""
        return hmac.compare_digest(self.guard(cookie), given)
