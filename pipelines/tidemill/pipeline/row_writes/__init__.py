"""Rows on their way into a table: kept while a write reads them, and merged by the driver."""
