"""`shoal inspect`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from shoal.cli.console import show_account, show_json, show_table, working
from shoal.cli.options import Reading, Running, read_options_of
from shoal.errors import SettingsError

__all__ = ["inspect"]


def inspect(
    *paths: Annotated[str, Parameter(help="The files, folders, globs or addresses to read.")],
    reading: Reading = Reading(),  # noqa: B008  frozen
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Print what is in a file."""
    from shoal.measure import summary
    from shoal.reading import read

    if not paths:
        raise SettingsError("name a file: shoal inspect events.parquet")
    with working(running) as run:
        people = read(list(paths), options=read_options_of(reading), run=run)
    account = people.account
    figures = summary(people)
    if running.json:
        show_json({"ok": True, "account": account.to_dict() if account else {}, **figures})
        return 0
    if account is not None:
        show_account(account)
    show_table("People", list(figures.items()))
    return 0
