"""A folder of files as a source: JSON lines or Parquet."""
