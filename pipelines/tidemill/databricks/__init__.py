"""Databricks: the bundle read offline, and dbx."""
