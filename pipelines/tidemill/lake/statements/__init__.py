"""The statements of `sql/`, finished for a view."""

from tidemill.lake.statements.statement import FOLDER, functions, names, statement

__all__ = ["FOLDER", "functions", "names", "statement"]
