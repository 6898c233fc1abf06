"""The command line: thin. `main` is what the `shoal` command calls."""

from shoal.cli.app import main

__all__ = ["main"]
