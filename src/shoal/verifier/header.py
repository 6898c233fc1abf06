"""Check that the `shoal` object of a release is public: only allowed keys, settings, claims and projections."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from shoal.claim import Claim
from shoal.seen.grid import Grid
from shoal.seen.header import is_count

if TYPE_CHECKING:
    from shoal.seen.findings import Findings

__all__ = ["check_header"]

_KEYS = {"format", "method", "parameters", "claim", "cell_m", "slot_s", "crs"}
_K, _SPAN_M, _LONG_S = 1_000, 40_000_000, 366 * 86_400 * 10  # people; around the Earth; ten years
_CANDIDATES = 1_000_000
_SETTINGS: dict[str, dict[str, tuple[str, ...] | int | None]] = {
    # The public settings of each method besides k: the words it may be, or the largest count (None: any).
    "shoal": {"max_span_m": _SPAN_M, "max_duration_s": _LONG_S},
    "k-concealment": {"candidates": _CANDIDATES},
    "k-scale": {
        "constraint": ("nu-k-pick", "k-pick", "full"),
        "candidates": _CANDIDATES,
        "picking": ("marginal",),
        "max_members": _CANDIDATES,
    },
    "glove": {
        "variant": ("strict", "loose"),
        "merge": ("k-merge", "two-stage"),
        "max_span_m": _SPAN_M,
        "max_duration_s": _LONG_S,
    },
    "kte-hide": {"tau_s": _LONG_S, "epsilon_s": _LONG_S, "reuse": ("strict",), "clusters": ("spectral",)},
    "promesse": {"step_m": 100_000},
    "geo-indistinguishability": {},
    "uniform": {"cell_m": _SPAN_M, "slot_s": _LONG_S},
}
_OF_POINTS = ("promesse", "geo-indistinguishability")
_PER_METRE = {"geo-indistinguishability": "epsilon_per_m"}
_LEAST_NOISE, _MOST_NOISE = 1e-6, 1.0  # per metre
_CODE = re.compile(r"(EPSG|epsg|ESRI|esri):[0-9]{4,6}|(IGNF|OGC):[A-Za-z0-9_.]{1,20}")
_OWN = re.compile(
    r"\+proj=laea \+lat_0=(0|-?[1-9][0-9]?) \+lon_0=(0|-?[1-9][0-9]{0,2}) "
    r"\+datum=WGS84 \+units=m \+no_defs \+type=crs"
)


def check_header(findings: Findings, stated: dict[str, Any], layout: str | None = None) -> None:
    """Check that the object holds the allowed keys and public values only, and that its method makes such rows."""
    findings.fail_if(set(stated) != _KEYS, "leaks/header-keys")
    claim, parameters, method = stated["claim"], stated.get("parameters"), stated.get("method")
    crs = stated.get("crs")
    findings.fail_if(not _is_plain_claim(claim), "leaks/header-claim")
    known = isinstance(method, str) and method in _SETTINGS
    findings.fail_if(not known, "leaks/header-method")
    other = known and layout is not None and (method in _OF_POINTS) != (layout == "points")
    findings.fail_if(other, "leaks/header-rows")
    coarse = stated.get("cell_m", 0) > _SPAN_M or stated.get("slot_s", 0) > _LONG_S
    findings.fail_if(coarse, "leaks/header-grid")
    public = isinstance(parameters, dict) and all(_is_public(str(method), *setting) for setting in parameters.items())
    findings.fail_if(not public, "leaks/header-parameters")
    said = parameters if isinstance(parameters, dict) else {}
    for name in ("k", "tau_s", "epsilon_s", "epsilon_per_m"):
        other = name in claim and said.get(name, claim[name]) != claim[name]
        findings.fail_if(other, "leaks/header-differs", name=name)
    findings.fail_if(not _is_public_crs(crs), "leaks/header-crs")


def _is_plain_claim(claim: dict[str, Any]) -> bool:
    """Return whether a claim is exactly as allowed: no other key, no reason but research, no share of many digits."""
    try:
        understood = Claim.from_dict(claim)
    except ValueError:
        return False
    if understood.to_dict() != claim:
        return False
    share = understood.leakage_share
    rounded = share is None or share == float(f"{share:.1e}")
    bounds = {"k": _K, "tau_s": _LONG_S, "epsilon_s": _LONG_S}
    bounded = all(claim[name] <= most for name, most in bounds.items() if name in claim)
    return understood.why in (None, "research") and rounded and bounded


def _is_public(method: str, name: str, value: Any) -> bool:
    own = _SETTINGS.get(method, {})
    if name == _PER_METRE.get(method):
        return isinstance(value, float) and _LEAST_NOISE <= value <= _MOST_NOISE
    if name == "k":
        return is_count(value) and value <= _K
    bound = own.get(name)
    if isinstance(bound, tuple):
        return value in bound
    return name in own and is_count(value) and (bound is None or value <= bound)


def _is_public_crs(crs: str | None) -> bool:
    """Return whether a CRS is a known code, or our own projection around a centre in whole degrees.

    Any other text has room for a place: a centre, an origin or a standard parallel with many digits.
    """
    if crs is None:
        return True
    if (own := _OWN.fullmatch(crs)) is not None:
        return abs(int(own[1])) <= 90 and abs(int(own[2])) <= 180
    return _CODE.fullmatch(crs) is not None and Grid(crs, 1, 1).is_known
