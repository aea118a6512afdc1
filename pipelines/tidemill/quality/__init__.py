"""Checks of a pipeline's tables with Great Expectations."""
