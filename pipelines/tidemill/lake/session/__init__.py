"""The Spark session, and what it needs of the machine."""
