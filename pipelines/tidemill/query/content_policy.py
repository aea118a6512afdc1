"""What a browser lets our pages do: show their own style and pictures inside them, nothing else."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

_STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)


def content_security_policy(template: str, *, forms: bool = False) -> str:
    """Return the Content-Security-Policy of a page with the styles of this template.

    No script runs, wherever it came from; nothing is fetched, framed or sent. The styles are named
    by their hashes, so that a style in a value is ignored too. With `forms` the page's own server
    takes forms.
    """
    hashes = (sha256(style.encode("utf-8")).digest() for style in _STYLE.findall(template))
    styles = " ".join(f"'sha256-{b64encode(digest).decode('ascii')}'" for digest in hashes)
    target = "'self'" if forms else "'none'"
    return (
        f"default-src 'none'; style-src {styles}; img-src data:; base-uri 'none'; "
        f"form-action {target}"
    )
