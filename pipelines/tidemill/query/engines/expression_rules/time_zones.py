"""Time zones of which DuckDB has other rules than Spark.

Both bring the rules of a release of the IANA database with them, DuckDB 2.0.0 an older one than
Java 17.0.15. Their clocks were compared every eleven hours from 1990 to 2036, in every zone that
has the name of a region; in these they differed at some time, by an hour.
"""

from __future__ import annotations

OTHER_RULES = (
    "Africa/Casablanca",  # no summer time but for Ramadan, from September 2026 on
    "Africa/El_Aaiun",
    "America/Bogota",  # 1992
    "America/Coyhaique",  # which Java does not know
    "America/Edmonton",  # no winter time from November 2026 on, and so down to Yellowknife
    "America/Inuvik",
    "America/Rainy_River",
    "America/Vancouver",
    "America/Winnipeg",
    "America/Yellowknife",
    "Canada/Central",
    "Canada/Mountain",
    "Canada/Pacific",
    "Europe/Chisinau",  # 2022
    "Europe/Tiraspol",
)
