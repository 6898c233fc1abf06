"""CSV and its kin: delimiters, quotes, encodings, marks, dates, names, cells repeated or missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fuzz.case import Case, Kind
from tests.fuzz.mutate import any_bytes, lines
from tests.fuzz.tables import header, options, read_case, row

if TYPE_CHECKING:
    from random import Random

_ENCODINGS = ("utf-8",) * 20 + ("utf-8-sig", "cp1252", "utf-16", "utf-16-le", "shift_jis", "utf-32")


def written(draw: Random) -> bytes:
    """Return a table as text."""
    columns = header(draw)
    delimiter = draw.choice((",",) * 9 + (";", "\t", "|", " "))
    end = draw.choice(("\n",) * 12 + ("\r\n", "\r", "\n\n", "\n\r"))
    quote = draw.choice(("needed", "needed", "always", "never", "wrong"))
    rows = [row(draw) for _ in range(draw.choice((0, 1, 3, 8, 8, 8, 30)))]
    table = [[name for _, name in columns], *([one[role] for role, _ in columns] for one in rows)]
    if draw.random() < 0.04:
        table = table[1:]
    for cells in table[1:]:
        if draw.random() < 0.03:
            cells.pop()
        if draw.random() < 0.03:
            cells.append("more")
    text = end.join(delimiter.join(_quoted(draw, cell, delimiter, quote) for cell in cells) for cells in table)
    before = draw.choice(("",) * 25 + ("# made by hand\n", "sep=;\n", "\n\n", "title\n", "\0"))
    text = before + text + draw.choice((end, end, "", end * 3))
    return text.encode(draw.choice(_ENCODINGS), "replace" if draw.random() < 0.9 else "ignore")


def _quoted(draw: Random, cell: str, delimiter: str, quote: str) -> str:
    special = any(sign in cell for sign in (delimiter, '"', "\n", "\r"))
    if quote == "never" or (quote == "needed" and not special):
        return cell
    if quote == "wrong" and draw.random() < 0.1:
        return draw.choice((f'"{cell}', f'{cell}"', f'"{cell}"x', f"'{cell}'"))
    return '"' + cell.replace('"', '""') + '"' if special or quote == "always" else cell


def draw_text(draw: Random) -> Case:
    data = written(draw)
    if draw.random() < 0.3:
        data = any_bytes(draw, data, 2)
    if draw.random() < 0.15:
        data = lines(draw, data)
    if draw.random() < 0.02:
        data = draw.randbytes(draw.randrange(200))
    chosen = options(draw)
    name = draw.choice(("a.csv",) * 6 + ("a.tsv", "a.txt", "a.plt"))
    if draw.random() < 0.04:
        return Case({f"in/{name}": data, f"in/b-{name}": written(draw)}, {**chosen, "_folder": True})
    return Case({name: data}, chosen)


def act(case: Case, folder):
    if case.options.get("_folder"):
        from tests.fuzz.tables import read

        return read(folder / "in", case.options, folder)
    return read_case(case, folder)


CSV = Kind("csv", draw_text, act)
