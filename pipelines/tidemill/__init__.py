"""Exact rolling-window features in Delta tables, on plain Spark, touched only when they change.

These names are stable; every other module may move. What opens a lake needs Spark, and is imported
when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tidemill import errors
from tidemill.config.pipeline_file import PipelineDefinition, load
from tidemill.config.settings import Clock, Place
from tidemill.config.stream_operators.processors import ProcessorKind, ProcessorOptions
from tidemill.errors import TidemillError
from tidemill.features import (
    Aggregate,
    FeatureView,
    Parameter,
    Part,
    Window,
    aggregate,
    approx_distinct,
    argmax,
    argmin,
    bloom,
    bool_and,
    bool_or,
    contains,
    count,
    cuckoo,
    distinct,
    first,
    first_k,
    first_seen,
    last,
    last_k,
    last_seen,
    max_,
    mean,
    min_,
    most_frequent,
    quantiles,
    ratio,
    stddev,
    sum_,
    top_k,
    variance,
)
from tidemill.lake.statements import statement
from tidemill.sources import Source
from tidemill.sources.source_kind import SourceContext, SourceKind, SourceOption, SourceWords

if TYPE_CHECKING:
    from tidemill.api import (
        GoldVersion,
        Lake,
        Quarantine,
        Status,
        chart,
        open_lake,
        register_kinesis,
        show,
    )
    from tidemill.online.client.async_feature_client import AsyncFeatureClient
    from tidemill.online.client.feature_client import FeatureClient
    from tidemill.online.server.serve import serve

__all__ = [
    "Aggregate",
    "AsyncFeatureClient",
    "Clock",
    "FeatureClient",
    "FeatureView",
    "GoldVersion",
    "Lake",
    "Parameter",
    "Part",
    "PipelineDefinition",
    "Place",
    "ProcessorKind",
    "ProcessorOptions",
    "Quarantine",
    "Source",
    "SourceContext",
    "SourceKind",
    "SourceOption",
    "SourceWords",
    "Status",
    "TidemillError",
    "Window",
    "aggregate",
    "approx_distinct",
    "argmax",
    "argmin",
    "bloom",
    "bool_and",
    "bool_or",
    "chart",
    "contains",
    "count",
    "cuckoo",
    "distinct",
    "errors",
    "first",
    "first_k",
    "first_seen",
    "last",
    "last_k",
    "last_seen",
    "load",
    "max_",
    "mean",
    "min_",
    "most_frequent",
    "open_lake",
    "quantiles",
    "ratio",
    "register_kinesis",
    "serve",
    "show",
    "statement",
    "stddev",
    "sum_",
    "top_k",
    "variance",
]

_OF_SPARK = (
    *("GoldVersion", "Lake", "Quarantine", "Status", "chart", "open_lake", "register_kinesis"),
    "show",
)
# These need no Spark, and are imported when they are first used.
_OF_ONLINE = {
    "AsyncFeatureClient": "tidemill.online.client.async_feature_client",
    "FeatureClient": "tidemill.online.client.feature_client",
    "serve": "tidemill.online.server.serve",
}


def __getattr__(name: str) -> Any:
    """Import what needs Spark; SetupError names the extra where Spark is missing."""
    if name in _OF_ONLINE:
        return getattr(importlib.import_module(_OF_ONLINE[name]), name)
    if name not in _OF_SPARK:
        raise AttributeError(f"module 'tidemill' has no attribute {name!r}")
    from tidemill.lake.session.session import require_spark

    require_spark()
    from tidemill import api

    return getattr(api, name)


def __dir__() -> list[str]:
    """Return the public names."""
    return __all__
