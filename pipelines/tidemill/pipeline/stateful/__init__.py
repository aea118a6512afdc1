"""The stateful engine: a ring of minute buckets per key in Spark's own state."""
