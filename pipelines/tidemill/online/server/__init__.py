"""The prediction API: rows of the online store over HTTP, within limits, with their age."""
