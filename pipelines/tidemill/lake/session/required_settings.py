"""What a session must be set to: UTC, ANSI, and TIMESTAMP as an instant.

In another zone `TIMESTAMP '2026-11-21 10:00:00'`, hours and dates are others; without ANSI a number
that overflows wraps around, and a value that cannot be cast is null.
"""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql.types import TimestampType

from tidemill.errors import SetupError

ZONE = "spark.sql.session.timeZone"
ANSI = "spark.sql.ansi.enabled"
TIMESTAMP = "spark.sql.timestampType"
SETTINGS = {ZONE: "UTC", ANSI: "true"}
# Other names of UTC. London's and others' that are off by nothing in winter are not.
_UTC = frozenset(
    """utc etc/utc z gmt etc/gmt greenwich etc/greenwich uct etc/uct universal etc/universal zulu
    etc/zulu gmt0 etc/gmt0 etc/gmt+0 etc/gmt-0 +00:00 -00:00 +0 -0 utc+0 utc-0 gmt+0 gmt-0 utc+00:00
    gmt+00:00""".split()
)


def apply(spark: SparkSession) -> SparkSession:
    """Set a session that this process made; return it."""
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    return spark


def check(spark: SparkSession) -> None:
    """Raise SetupError for a session, which may be a user's own, that is set otherwise."""
    zone = spark.conf.get(ZONE) or ""
    if zone.lower() not in _UTC:
        raise _set_otherwise(f"its time zone is {zone!r}", ZONE, "UTC")
    if (spark.conf.get(ANSI) or "").lower() != "true":
        raise _set_otherwise("ANSI mode is off", ANSI, "true")
    literal = spark.sql("SELECT TIMESTAMP '2026-01-01 00:00:00' AS at").schema["at"]
    if not isinstance(literal.dataType, TimestampType):
        raise _set_otherwise("its TIMESTAMP has no zone", TIMESTAMP, "TIMESTAMP_LTZ")


def _set_otherwise(error_text: str, name: str, value: str) -> SetupError:
    return SetupError(error_text, where="session", expected=f'spark.conf.set("{name}", "{value}")')
