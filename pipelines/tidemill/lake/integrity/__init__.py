"""Whether a lake's tables, ledgers and checkpoints agree, and what is refused when they do not."""
