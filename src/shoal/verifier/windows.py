"""Check windows: all samples of a person during some time fit k records, and these together tell little more."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.lists import offsets_of
from shoal.run import LOCAL, Run
from shoal.seen.arrays import distinct
from shoal.seen.cover import cover_pairs
from shoal.verifier.windows_search import look_through

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.seen.audit import Witnesses
    from shoal.seen.findings import Findings
    from shoal.seen.original import Original
    from shoal.seen.records import Catalogue
    from shoal.verifier.windows_search import WindowTally

__all__ = ["AskedWindows", "check_windows", "two_digits_up"]


@dataclass(frozen=True)
class AskedWindows:
    """What is asked about windows: at least k records for each of length `tau_s`, with leakage up to `epsilon_s`.

    `bounded`: no window may leak more than that; otherwise leakage is only measured. `stated` is what a claim says of
    it: beyond so many seconds no more than that share of the windows leak.
    """

    k: int
    tau_s: int
    epsilon_s: int | None = None
    bounded: bool = False
    stated: tuple[int, float] | None = None


def check_windows(
    findings: Findings,
    people: Original,
    records: Catalogue,
    asked: AskedWindows,
    *,
    slot_s: int,
    witnesses: Witnesses | None = None,
    exact: bool,
    run: Run = LOCAL,
) -> None:
    """Check the claims `kte-cover(k, τ)` and `kte-anonymity(k, τ, ε)`.

    For every user and every window of length τ (in whole slots, rounded up) that starts at a published sample: at
    least k people's records hold all of the user's samples in the window and have no box wholly inside it without one.
    A record counts for as many people as it was published for, if it covers as many from end to end; one that covers
    nobody belongs to nobody, which is a failure. *Leakage*, for windows that start or end at a sample: the time from
    the window to the end of the unbroken run of samples, on each side, that ALL those records hold; the longer side
    counts. The records that an audit claims are tried first, which only saves time. Cost: see `look_through`.
    """
    people_of = _people_of(people, records, witnesses, run)
    nobodys = int((people_of == 0)[records.groups].sum())
    findings.fail_if(nobodys, "windows/nobodys")
    published = int(records.weights.sum())
    findings.fail_if(published > len(people), "windows/more-records-than-users")
    length = -(-asked.tau_s // slot_s)
    known = None if witnesses is None else _known(witnesses, records, len(people))
    weights = np.minimum(records.unique.weights, people_of)
    tally = look_through(people, records.unique, weights, length=length, k=asked.k, known=known, exact=exact, run=run)
    _report_cover(findings, tally, asked, exact=exact)
    _report_leakage(findings, tally, asked, slot_s)


def two_digits_up(share: float) -> float:
    """Round a share up to two significant digits, for publication.

    >>> two_digits_up(0.01234), two_digits_up(0.012), two_digits_up(0.0)
    (0.013, 0.012, 0.0)
    """
    if share <= 0:
        return 0.0
    digits = 1 - math.floor(math.log10(share))
    rounded = round(share, digits)
    return rounded if rounded >= share else round(rounded + 10.0**-digits, digits)


def _people_of(people: Original, records: Catalogue, witnesses: Witnesses | None, run: Run) -> NDArray[np.int64]:
    """Count the people whom each kind of record covers from end to end: with an audit its owners, else all."""
    if witnesses is not None:
        owned = witnesses.owned()
        pairs = distinct(records.groups[witnesses.records[owned]] * len(people) + witnesses.users[owned])
        return np.bincount(pairs // len(people), minlength=len(records.unique))
    _, kind = cover_pairs(people, records.unique, np.arange(len(people)), run=run)
    return np.bincount(kind, minlength=len(records.unique))


def _known(witnesses: Witnesses, records: Catalogue, users: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each user the kinds of records that the audit puts the user into."""
    kinds = len(records.unique)
    pairs = distinct(witnesses.users * kinds + records.groups[witnesses.records])
    return offsets_of(np.bincount(pairs // kinds, minlength=users)), pairs % kinds


def _report_cover(findings: Findings, tally: WindowTally, asked: AskedWindows, *, exact: bool) -> None:
    short = int((tally.least < asked.k).sum())
    findings.fail_if(not tally.windows, "windows/nobody")
    findings.fail_if(tally.short, "windows/too-few-records", users=short, k=asked.k)
    least = int(tally.least.min()) if tally.windows else 0
    findings.figures.setdefault("users_short", short)
    findings.figures.setdefault("min_cover", least if exact else min(asked.k, least))
    findings.figures.update(
        tau_s=asked.tau_s, windows=tally.windows, windows_short=tally.short, windows_ending_short=tally.ending_short
    )
    if exact and tally.windows:
        values, times = np.unique(tally.counts, return_counts=True)
        findings.figures["windows_cover"] = {
            "min": least,
            "median": float(np.median(tally.counts)),
            "max": int(tally.counts.max()),
            "histogram": {str(value): int(time) for value, time in zip(values.tolist(), times.tolist(), strict=True)},
        }


def _report_leakage(findings: Findings, tally: WindowTally, asked: AskedWindows, slot_s: int) -> None:
    """Report how far beyond their window people can be followed, and check it against what was asked."""
    seconds, times = tally.leaks * slot_s, tally.times
    total = int(times.sum())
    leakage: dict[str, Any] = {
        "windows": total,
        "share_leaking": _share(int(times[seconds > 0].sum()), total),
        "mean_s": round(float((seconds * times).sum()) / total, 1) if total else 0.0,
        **{f"p{percent}_s": _quantile(seconds, times, percent) for percent in (50, 90, 99)},
        "max_s": int(seconds.max(initial=0)),
        "share_outside_held": _share(tally.told, tally.outside),
    }
    findings.figures["leakage"] = leakage
    if asked.stated is not None:
        epsilon_s, most = asked.stated
        share = int(times[seconds > epsilon_s].sum()) / max(total, 1)
        findings.fail_if(two_digits_up(share) > most, "windows/leaking-share")
    if asked.epsilon_s is None:
        return
    above = int(times[seconds > asked.epsilon_s].sum())
    leakage.update(epsilon_s=asked.epsilon_s, windows_above=above, share_above=_share(above, total))
    findings.fail_if(asked.bounded and above, "windows/leakage", total=total, epsilon_s=asked.epsilon_s)


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0


def _quantile(values: NDArray[np.int64], times: NDArray[np.int64], percent: int) -> int:
    """Return the least value that at least so many percent of all values do not exceed."""
    if not len(values):
        return 0
    return int(values[np.searchsorted(np.cumsum(times) * 100, percent * int(times.sum()))])
