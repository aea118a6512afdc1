"""Slices of accepted events, into the online store: what each batch of clean adds, and merging."""
