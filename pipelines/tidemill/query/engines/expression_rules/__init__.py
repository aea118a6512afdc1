"""Expressions of Spark's SQL that DuckDB computes alike, and how it is asked for each.

What is not listed here is not translated: a rule stands for something whose results were compared
on both engines, with null, edges and overflow. A rule gets an expression whose operands DuckDB
already reads, and their types; it returns the expression for DuckDB, and its type.

Where the two differ only for rare values (a division by zero, letters beyond ASCII in `upper`), the
expression is an error in DuckDB for those, and Spark is asked.
"""
