"""How commands print: for people, as JSON, on a terminal."""
