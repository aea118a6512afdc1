"""A user's own SQL: expressions over one event, the same at any time."""
