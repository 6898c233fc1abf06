"""`python -m shoal.cli` is the `shoal` command."""

from shoal.cli.app import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
