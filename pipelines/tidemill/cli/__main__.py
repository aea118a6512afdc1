"""`python -m tidemill.cli`."""

from tidemill.cli import main

main()
