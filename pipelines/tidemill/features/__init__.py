"""What to compute: views, windows, aggregates and their YAML. No Spark, no I/O but the definition
files."""

from tidemill.features.aggregates import Aggregate
from tidemill.features.view import Feature, FeatureView, Partial, count, max_, min_
from tidemill.features.windows import Window

__all__ = ["Aggregate", "Feature", "FeatureView", "Partial", "Window", "count", "max_", "min_"]
