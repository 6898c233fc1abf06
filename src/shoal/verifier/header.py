"""Check that the `shoal` object of a release is public: only allowed keys, settings, claims and projections."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from shoal.claim import Claim
from shoal.seen.header import is_count

if TYPE_CHECKING:
    from shoal.seen.findings import Findings

__all__ = ["check_header"]

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


def check_header(findings: Findings, stated: dict[str, Any]) -> None:
    """Check that the object holds the allowed keys and public values only."""
    findings.fail_if(set(stated) != _KEYS, "leaks/header-keys")
    claim, parameters, method = stated["claim"], stated.get("parameters"), stated.get("method")
    crs = stated.get("crs")
    findings.fail_if(not _is_plain_claim(claim), "leaks/header-claim")
    known = isinstance(method, str) and _METHOD.fullmatch(method) is not None
    findings.fail_if(not known, "leaks/header-method")
    public = isinstance(parameters, dict) and all(_is_public(str(method), *setting) for setting in parameters.items())
    findings.fail_if(not public, "leaks/header-parameters")
    said = parameters if isinstance(parameters, dict) else {}
    for name in ("k", "tau_s", "epsilon_s", "epsilon_per_m"):
        other = name in claim and said.get(name, claim[name]) != claim[name]
        findings.fail_if(other, "leaks/header-differs", name=name)
    findings.fail_if(not _is_plain_crs(crs), "leaks/header-crs")
    findings.fail_if(_has_own_centre(crs), "leaks/header-centre")


def _is_plain_claim(claim: dict[str, Any]) -> bool:
    """Return whether a claim is exactly as allowed: no other key, no reason but research, no share of many digits."""
    try:
        understood = Claim.from_dict(claim)
    except ValueError:
        return False
    share = understood.leakage_share
    rounded = share is None or share == float(f"{share:.1e}")
    return understood.to_dict() == claim and understood.why in (None, "research") and rounded


def _is_public(method: str, name: str, value: Any) -> bool:
    own = _SETTINGS.get(method, {})
    words = own.get(name)
    if words is not None:
        return value in words
    if name == _PER_METRE.get(method):
        return isinstance(value, float) and 0 < value < float("inf")
    return (name == "k" or name in own) and is_count(value)


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
