"""The command line, a thin layer over the library. The `shoal` command calls `main`."""

from shoal.cli.app import main

__all__ = ["main"]
