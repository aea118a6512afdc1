"""The gold layer: one row per key, changed only where its values change."""
