"""The `shoal` object of a release: its grid, its claim and its k."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any, TypeGuard

from shoal.claim import Claim
from shoal.seen.grid import Grid
from shoal.units import INT32

__all__ = ["Header", "is_count", "parse_json", "read_header", "truth_level"]


@dataclass(frozen=True)
class Header:
    """The fields of the `shoal` object that verification needs; those missing in the claim come from the parameters.

    `truth` is the level of truth: `member` (every box holds a sample of every member of its record) or the weaker
    `group` (of some member; every member was in its area). Only `k-anonymity` may be of the weaker one. `method` and
    `settings` say what else the release must be, whatever it claims.
    """

    grid: Grid
    claim: Claim
    k: int | None
    tau_s: int | None = None
    epsilon_s: int | None = None
    truth: str = "member"
    method: str | None = field(default=None, compare=False)
    settings: dict[str, Any] = field(default_factory=dict, compare=False)


def parse_json(text: bytes, most: int | None = None) -> Any:
    """Read JSON that is written as Python writes it; else return a string: repeated keys or blanks could carry data.

    Text of more than `most` bytes, numbers that JSON does not have (NaN) and halves of characters are no JSON either.

    >>> parse_json(b'{"k": 3}'), parse_json(b'{"k": 4, "k": 3}')
    ({'k': 3}, 'not JSON')
    """
    try:
        if most is not None and len(text) > most:
            return "not JSON"
        plain = text.decode()
        value = json.loads(plain)
        how: tuple[dict[str, Any], ...] = ({}, {"ensure_ascii": False}, {"indent": 2, "ensure_ascii": False})
        forms = [json.dumps(value, allow_nan=False, **form) for form in how]
        forms[1].encode()
    except (ValueError, RecursionError):
        return "not JSON"
    return value if value is not None and plain.removesuffix("\n") in forms else "not JSON"


def read_header(stated: Any) -> Header | None:
    """Read the `shoal` object; return None if the grid or the claim can't be understood."""
    if not isinstance(stated, dict) or not is_count(stated.get("format")) or stated["format"] != 1:
        return None
    crs: Any = stated.get("crs")
    cell_m: Any = stated.get("cell_m")
    slot_s: Any = stated.get("slot_s")
    claim, parameters = stated.get("claim"), stated.get("parameters")
    if not (is_count(cell_m) and is_count(slot_s) and (crs is None or isinstance(crs, str))):
        return None
    if not isinstance(claim, dict) or not isinstance(claim.get("name"), str):
        return None
    try:
        understood = Claim.from_dict(claim)
    except ValueError:
        return None
    if understood.why != "research":
        understood = replace(understood, why=None)  # the error is noted elsewhere; its words are not repeated
    settings = parameters if isinstance(parameters, dict) else {}
    k, tau_s, epsilon_s = (getattr(understood, name) or settings.get(name) for name in ("k", "tau_s", "epsilon_s"))
    if not all(value is None or is_count(value) for value in (k, tau_s, epsilon_s)):
        return None
    method = stated.get("method")
    truth = truth_level(method, settings, understood.name)
    name = method if isinstance(method, str) else None
    return Header(Grid(crs, int(cell_m), int(slot_s)), understood, k, tau_s, epsilon_s, truth, name, settings)


def truth_level(method: Any, parameters: dict[str, Any], claim: str = "k-anonymity") -> str:
    """Return the level of truth that a method promises: `group` for GLOVE with its own merging, else `member`.

    A claim that counts the people in a box needs the level `member`, whatever the method is.

    >>> truth_level("glove", {"merge": "two-stage"}), truth_level("glove", {"merge": "k-merge"})
    ('group', 'member')
    """
    weaker = method == "glove" and parameters.get("merge") == "two-stage" and claim == "k-anonymity"
    return "group" if weaker else "member"


def is_count(value: Any) -> TypeGuard[int]:
    """Return whether a value is a whole number from 1 on that fits 31 bits; True does not count as one."""
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= INT32
