"""The Databricks bundle, read offline: `check` finds what a deployment would stumble over.

    databricks.yml ─┐                ┌─ shapes ───── fields, types, words (JSON Schema, parser)
    resources/*.yml ─┼─ project ──────┼─ references ─ variables and resources that are named
    dashboards ─────┘  values, lines ├─ files ────── paths, wheels, secrets
                                     ├─ access ───── shared folders, wide grants
                     ├─ tasks ────── clusters, order, entry points, command lines
                                     ├─ writers ──── one writer in each target
                                     └─ sql ──────── dashboards and alerts on an empty lake

Each check yields findings, and each finding names a file and a line. Nothing talks to a workspace.
"""

from tidemill.databricks.bundle.check import check
from tidemill.databricks.bundle.issue import Finding
from tidemill.databricks.bundle.project import Bundle, read

__all__ = ["Bundle", "Finding", "check", "read"]
