"""The `shoal` object of a release: which grid, which claim, and nothing that it must not say."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shoal.claim import Claim
from shoal.verifier.grid import Grid

if TYPE_CHECKING:
    from shoal.verifier.verdict import Findings

__all__ = ["Header", "check_header", "parse_json", "read_header", "truth_level"]

_KEYS = {"format", "method", "parameters", "claim", "cell_m", "slot_s", "crs"}
_METHOD = re.compile(r"[a-z][a-z0-9-]{0,31}")
_SETTINGS: dict[str, dict[str, tuple[str, ...] | None]] = {
    # The public settings of each method besides k: the words it may be, None for a count.
    "shoal": {"max_span_m": None, "max_duration_s": None},
    "k-concealment": {"candidates": None},
    "k-scale": {
        "constraint": ("nu-k-pick", "k-pick", "full"),
        "candidates": None,
        "picking": ("marginal",),
        "max_members": None,
    },
    "glove": {
        "variant": ("strict", "loose"),
        "merge": ("k-merge", "two-stage"),
        "max_span_m": None,
        "max_duration_s": None,
    },
    "kte-hide": {"tau_s": None, "epsilon_s": None, "reuse": ("strict",), "clusters": ("spectral",)},
    "promesse": {"step_m": None},
    "geo-indistinguishability": {},
    "uniform": {"cell_m": None, "slot_s": None},
}
_PER_METRE = {"geo-indistinguishability": "epsilon_per_m"}
_CODE = re.compile(r"(EPSG|epsg|ESRI|esri|OGC|IGNF):[A-Za-z0-9_.]{1,20}")
_LOCAL = ("laea", "aeqd", "gnom", "ortho", "stere")  # projections around a centre of one's own choice
_NUMBER = r"-?[0-9]{1,9}(\.[0-9]{1,16})?"
_TERMS = {
    **dict.fromkeys(("lat_0", "lon_0", "lat_1", "lat_2", "lat_ts", "x_0", "y_0", "k", "k_0"), _NUMBER),
    **dict.fromkeys(("proj", "datum", "ellps"), r"[A-Za-z0-9_]{1,20}"),
    "zone": r"[0-9]{1,2}",
    "towgs84": rf"{_NUMBER}(,{_NUMBER}){{2}}((,{_NUMBER}){{4}})?",
    "units": "m",
    "type": "crs",
    **dict.fromkeys(("south", "no_defs"), ""),
}


@dataclass(frozen=True)
class Header:
    """What verification needs of the `shoal` object; what the claim does not say is taken from the parameters.

    `truth` is the level of truth: `member` (every box holds a sample of every member of its record) or `group` (of
    some member).
    """

    grid: Grid
    claim: Claim
    k: int | None
    tau_s: int | None = None
    epsilon_s: int | None = None
    truth: str = "member"


def parse_json(text: bytes) -> Any:
    """Read JSON that is written as Python writes it; a string if it is not: a repeated key or blanks could tell.

    >>> parse_json(b'{"k": 3}'), parse_json(b'{"k": 4, "k": 3}')
    ({'k': 3}, 'not JSON')
    """
    try:
        plain = text.decode()
        value = json.loads(plain)
        forms = (
            json.dumps(value),
            json.dumps(value, ensure_ascii=False),
            json.dumps(value, indent=2, ensure_ascii=False),
        )
    except (ValueError, RecursionError):
        return "not JSON"
    return value if value is not None and plain.removesuffix("\n") in forms else "not JSON"


def read_header(stated: Any) -> Header | None:
    """Read the object; None if the grid or the claim can't be understood."""
    if not isinstance(stated, dict) or not _is_count(stated.get("format")) or stated["format"] != 1:
        return None
    crs: Any = stated.get("crs")
    cell_m: Any = stated.get("cell_m")
    slot_s: Any = stated.get("slot_s")
    claim, parameters = stated.get("claim"), stated.get("parameters")
    if not (_is_count(cell_m) and _is_count(slot_s) and (crs is None or isinstance(crs, str))):
        return None
    if not isinstance(claim, dict):
        return None
    try:
        understood = Claim.from_dict(claim)
    except ValueError:
        return None
    if understood.why != "research":
        understood = replace(understood, why=None)  # what is wrong with it is noted; its words are not repeated
    settings = parameters if isinstance(parameters, dict) else {}
    k, tau_s, epsilon_s = (getattr(understood, name) or settings.get(name) for name in ("k", "tau_s", "epsilon_s"))
    if not all(value is None or _is_count(value) for value in (k, tau_s, epsilon_s)):
        return None
    truth = truth_level(stated.get("method"), settings)
    return Header(Grid(crs, int(cell_m), int(slot_s)), understood, k, tau_s, epsilon_s, truth)


def truth_level(method: Any, parameters: dict[str, Any]) -> str:
    """Return the level of truth that a method promises: only GLOVE with its own merging is not about every member.

    >>> truth_level("glove", {"merge": "two-stage"}), truth_level("glove", {"merge": "k-merge"})
    ('group', 'member')
    """
    return "group" if method == "glove" and parameters.get("merge") == "two-stage" else "member"


def check_header(findings: Findings, stated: dict[str, Any]) -> None:
    """Check that the object holds the allowed keys and public values only."""
    findings.fail_if(set(stated) != _KEYS, "leaks", "The shoal object has other keys than the format allows.")
    claim, parameters, method = stated["claim"], stated.get("parameters"), stated.get("method")
    crs = stated.get("crs")
    findings.fail_if(not _is_plain_claim(claim), "leaks", "The claim holds more than its name and what it promises.")
    known = isinstance(method, str) and _METHOD.fullmatch(method) is not None
    findings.fail_if(not known, "leaks", "The method is not a plain name.")
    public = isinstance(parameters, dict) and all(_is_public(str(method), *setting) for setting in parameters.items())
    findings.fail_if(not public, "leaks", "The parameters hold something that is not a public setting of the method.")
    said = parameters if isinstance(parameters, dict) else {}
    for name in ("k", "tau_s", "epsilon_s", "epsilon_per_m"):
        other = name in claim and said.get(name, claim[name]) != claim[name]
        findings.fail_if(other, "leaks", f"The parameters hold another {name} than the claim.")
    findings.fail_if(not _is_plain_crs(crs), "leaks", "The CRS is neither a code nor a projection in plain PROJ terms.")
    findings.fail_if(
        _has_own_centre(crs),
        "leaks",
        "The projection's centre is not in whole degrees: it may be the data's own.",
    )


def _is_plain_claim(claim: dict[str, Any]) -> bool:
    """Return whether a claim is one, to the letter: no other key, no reason but research, no share of many digits."""
    try:
        understood = Claim.from_dict(claim)
    except ValueError:
        return False
    share = understood.leakage_share
    rounded = share is None or share == float(f"{share:.1e}")
    return understood.to_dict() == claim and understood.why in (None, "research") and rounded


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31


def _is_public(method: str, name: str, value: Any) -> bool:
    own = _SETTINGS.get(method, {})
    words = own.get(name)
    if words is not None:
        return value in words
    if name == _PER_METRE.get(method):
        return isinstance(value, float) and 0 < value < float("inf")
    return (name == "k" or name in own) and _is_count(value)


def _is_plain_crs(crs: str | None) -> bool:
    if crs is None or _CODE.fullmatch(crs):
        return True
    terms = [term.partition("=") for term in crs.split(" ")]
    return len({name for name, _, _ in terms}) == len(terms) and all(
        name.startswith("+")
        and name[1:] in _TERMS
        and bool(equals) == bool(_TERMS[name[1:]])
        and re.fullmatch(_TERMS[name[1:]], value) is not None
        for name, equals, value in terms
    )


def _has_own_centre(crs: str | None) -> bool:
    """Return whether a local projection is centred off whole degrees or says more than its centre; 14.0 is whole."""
    terms = dict(term.partition("=")[::2] for term in (crs or "").split(" "))
    if terms.get("+proj") not in _LOCAL:
        return False
    numbers = (terms.get(f"+{name}", "0") for name in ("lat_0", "lon_0", "x_0", "y_0"))
    more = {f"+{name}" for name in ("lat_1", "lat_2", "lat_ts", "k", "k_0", "zone", "towgs84")} & set(terms)
    return bool(more) or any(re.fullmatch(r"-?[0-9]{1,9}(\.0+)?", number) is None for number in numbers)
