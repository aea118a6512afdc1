"""Asking for features from Python: over HTTP, or from a store in the same process."""
