"""How commands print: tables, results, the terminal."""
