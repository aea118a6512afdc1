"""Delta tables, and what makes them trustworthy."""
