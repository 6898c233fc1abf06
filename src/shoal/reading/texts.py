"""Texts: tell the encoding and the form of a text file from its beginning, and rewrite what the engine can't read."""

from __future__ import annotations

import codecs

__all__ = ["check_encoding"]


def check_encoding(encoding: str) -> str:
    """Return Python's name of an encoding; raises ValueError if it is not known.

    >>> check_encoding("Windows-1252"), check_encoding("UTF8")
    ('cp1252', 'utf-8')
    """
    try:
        found = codecs.lookup(encoding)
        "".encode(found.name)
    except (LookupError, TypeError, ValueError):
        raise ValueError("the encoding is not known; give e.g. utf-8, cp1252, latin-1, utf-16, gb18030") from None
    return found.name
