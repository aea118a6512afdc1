"""Slices: partials of a key's minutes and hours, which an answer merges over its own windows.

events ──batch of clean──► slices of (key, hour) ──merge over [T - w, T)──► values
"""
