"""Check integrity: the manifest beside a release, and the hashes in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from shoal.seen.manifest import file_digest, is_manifest

if TYPE_CHECKING:
    from pathlib import Path

    from shoal.seen.findings import Findings

__all__ = ["check_counts", "check_manifest", "check_point_counts", "rounding"]


def check_manifest(
    findings: Findings, path: Path, manifest: Any, stated: Any, *, is_csv: bool
) -> dict[str, Any] | None:
    """Check the manifest's members, the hashes of its files and that it says what the file itself says.

    Returns the manifest if it is well formed. `stated` is the file's own `shoal` object; CSV has none.
    """
    if manifest is None and stated is not None:
        findings.fail("integrity/no-manifest")
        return None
    if manifest is None:
        findings.note("no-manifest")
        return None
    findings.ran("integrity")
    if not is_manifest(manifest):
        findings.fail("integrity/malformed")
        return None
    if set(manifest["files"]) != {path.name}:
        findings.fail("integrity/file-names")
    elif manifest["files"][path.name] != file_digest(path):
        findings.fail("integrity/hash")
    if not is_csv and not _same(stated, manifest["shoal"]):
        findings.fail("integrity/contradiction")
    claim = manifest["shoal"].get("claim")
    name = claim.get("name") if isinstance(claim, dict) else None
    if manifest["seeded"] and name not in ("k-anonymity", "none"):
        findings.fail("integrity/seeded")
    whole: dict[str, Any] = manifest
    return whole


def _same(left: Any, right: Any) -> bool:
    """Return whether two objects are written alike; 1, 1.0 and true are equal, but written differently."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def check_counts(
    findings: Findings, counts: dict[str, int], records: int, samples: int, suppressed: int | None
) -> None:
    """Check that the manifest's counts are rounded, and true.

    `suppressed` of the `samples` were suppressed; None: as many as the manifest says, within its rounding.
    """
    _check_rounded(findings, counts)
    false = abs(counts["records"] - records) > rounding(counts["records"])
    findings.fail_if(false, "integrity/records")
    if suppressed is None:
        stated, published = counts["samples_suppressed"], counts["samples_published"]
        false = abs(samples - stated - published) > rounding(stated) + rounding(published)
    else:
        false = counts["samples_published"] != int(float(f"{samples - suppressed:.1e}"))
    findings.fail_if(false, "integrity/samples")
    findings.fail_if(counts["samples_created"], "truth/samples-created")


def check_point_counts(findings: Findings, counts: dict[str, int], records: int, points: int) -> None:
    """Check that the manifest's counts of a release of points are rounded, and true as far as the file tells."""
    _check_rounded(findings, counts)
    true = {"records": records, "samples_published": points}
    false = [counts[name] != int(float(f"{number:.1e}")) for name, number in true.items()]
    findings.fail_if(sum(false), "integrity/records-and-points")
    more = counts["samples_created"] > counts["samples_published"]
    findings.fail_if(more, "integrity/points-created")


def _check_rounded(findings: Findings, counts: dict[str, int]) -> None:
    exact = sum(value != round(value, 2 - len(str(value))) for value in counts.values())
    findings.fail_if(exact, "leaks/exact-counts")


def rounding(value: int) -> int:
    """Return how far a count may be from its true value after rounding to two significant digits.

    >>> rounding(99), rounding(120), rounding(12000)
    (0, 5, 500)
    """
    return 0 if value < 100 else 10 ** (len(str(value)) - 2) // 2
