"""Exact rolling-window features in Delta tables, on plain Spark, touched only when they change."""

from tidemill.errors import TidemillError
from tidemill.features import FeatureView, Window, count, max_, min_
from tidemill.features.definition import PipelineDefinition, load
from tidemill.settings import Clock, Place
from tidemill.statements import statement

__all__ = [
    "Clock",
    "FeatureView",
    "PipelineDefinition",
    "Place",
    "TidemillError",
    "Window",
    "count",
    "load",
    "max_",
    "min_",
    "statement",
]
