"""The `shoal` object of a release: which grid, which claim, and nothing that it must not say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shoal.release import CLAIMS, Claim
from shoal.verifier.grid import Grid

if TYPE_CHECKING:
    from shoal.verifier.verdict import Findings

__all__ = ["Header", "check_header", "read_header"]

_KEYS = {"format", "method", "parameters", "claim", "cell_m", "slot_s", "crs"}
_WORD = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_CENTRE = re.compile(r"\+(?:lat_0|lon_0)=(\S+)")


@dataclass(frozen=True)
class Header:
    """What verification needs of the `shoal` object."""

    grid: Grid
    claim: Claim
    k: int | None


def read_header(stated: Any) -> Header | None:
    """Read the object; None if the grid or the claim can't be understood."""
    if not isinstance(stated, dict) or stated.get("format") != 1:
        return None
    crs: Any = stated.get("crs")
    cell_m: Any = stated.get("cell_m")
    slot_s: Any = stated.get("slot_s")
    claim, parameters = stated.get("claim"), stated.get("parameters")
    if not (_is_count(cell_m) and _is_count(slot_s) and (crs is None or isinstance(crs, str))):
        return None
    if not isinstance(claim, dict) or claim.get("name") not in CLAIMS:
        return None
    k = claim.get("k", parameters.get("k") if isinstance(parameters, dict) else None)
    if k is not None and not _is_count(k):
        return None
    return Header(Grid(crs, int(cell_m), int(slot_s)), Claim.from_dict(claim), k)


def check_header(findings: Findings, stated: dict[str, Any]) -> None:
    """Check that the object holds the allowed keys and public values only."""
    findings.fail_if(set(stated) != _KEYS, "leaks", "The shoal object has other keys than the format allows.")
    claim, parameters = stated.get("claim"), stated.get("parameters")
    plain = isinstance(claim, dict) and set(claim) <= {"name", "k", "why"} and _is_word(claim.get("why", "none"))
    findings.fail_if(not plain, "leaks", "The claim holds more than its name, k and a word why.")
    promised = not isinstance(claim, dict) or claim.get("name") == "none" or _is_count(claim.get("k"))
    findings.fail_if(not promised, "leaks", "The claim does not say for which k.")
    public = isinstance(parameters, dict) and all(_is_public(key, value) for key, value in parameters.items())
    findings.fail_if(not public, "leaks", "The parameters hold something that is not a public setting.")
    findings.fail_if(not _is_word(stated.get("method")), "leaks", "The method is not a plain name.")
    crs = stated.get("crs")
    exact = isinstance(crs, str) and "+proj=laea" in crs and any("." in part for part in _CENTRE.findall(crs))
    findings.fail_if(exact, "leaks", "The projection's centre is not in whole degrees: it may be the data's own.")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and _WORD.fullmatch(value) is not None


def _is_public(key: Any, value: Any) -> bool:
    scalar = value is None or isinstance(value, (bool, int, float)) or _is_word(value)
    return _is_word(key) and key != "seed" and scalar
