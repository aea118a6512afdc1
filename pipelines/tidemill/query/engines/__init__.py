"""Who answers a statement: DuckDB, without a JVM, where it answers as Spark does; else Spark.

text ─► translation ─► DuckDB over the folder's files ─► rows
            └─ not known to be alike, or an error ─► Spark
"""
