"""Exact rolling-window features in Delta tables, on plain Spark, touched only when they change."""

from tidemill.errors import TidemillError
from tidemill.features import FeatureView, Window, count
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
    "statement",
]
