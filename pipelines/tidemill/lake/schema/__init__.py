"""The schemas of tables: declared, created, changed, and what their properties say."""
