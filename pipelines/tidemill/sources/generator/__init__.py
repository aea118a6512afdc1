"""Synthetic events as a source: the same seed gives the same records."""
