"""The way of a batch: source, bronze, silver, gold."""
