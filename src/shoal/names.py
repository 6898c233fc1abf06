"""Names of settings: as flags of the command line, and the nearest to one that does not exist."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["flag_of", "nearest", "with_flags"]

_NAMED = re.compile(r'`([a-z]\w*)(?:="?([^"`]*)"?)?`')


def flag_of(name: str) -> str:
    """Return the flag of a setting.

    >>> flag_of("max_span")
    '--max-span'
    """
    return f"--{name.replace('_', '-')}"


def with_flags(message: str) -> str:
    """Return a message with the settings in backticks named as on the command line.

    Messages name settings as they are written in Python; the command line prints them with this function.

    >>> with_flags('choose another `work_dir`, or give e.g. `cell="100m"` and `threads=1`')
    'choose another --work-dir, or give e.g. --cell 100m and --threads 1'
    """
    return _NAMED.sub(lambda named: " ".join([flag_of(named[1]), *filter(None, [named[2]])]), message)


def nearest(name: str, names: Iterable[str], form: str = "{}") -> str:
    """Return the advice for a name that is not among some names: the nearest of them, or all.

    >>> nearest("anonymise", ["anonymize", "verify"]), nearest("x", ["read", "verify"], "[{}]")
    ('did you mean anonymize?', 'there are: [read], [verify]')
    """
    known = list(names)
    near = get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {form.format(near[0])}?" if near else f"there are: {', '.join(map(form.format, known))}"
