"""The silver layer: events of records, minute buckets of events."""
