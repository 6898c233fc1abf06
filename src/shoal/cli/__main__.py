"""Run the `shoal` command as `python -m shoal.cli`."""

from shoal.cli.app import main

__all__: list[str] = []

if __name__ == "__main__":
    main()
