"""The commands: a module for each package that they call."""
