"""What the prediction API and its client need beside the package."""

from __future__ import annotations

from importlib.util import find_spec

from tidemill.errors import SetupError

_SERVE = ("fastapi", "httpx", "orjson", "uvicorn")


def require_serve() -> None:
    """Raise SetupError when a package of the extra `serve` cannot be imported."""
    missing = [name for name in _SERVE if find_spec(name) is None]
    if missing:
        raise SetupError(
            f"{', '.join(missing)} cannot be imported",
            where="the prediction API",
            expected="pip install 'tidemill[serve]', and 'tidemill[redis]' for a store in Redis",
        )
