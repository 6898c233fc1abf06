"""Read a release back from its files, as the object that was published."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.claim import Claim
from shoal.errors import CannotCheck, UnreadableFile
from shoal.frame import Frame
from shoal.layouts import Boxes, Points
from shoal.lists import offsets_of
from shoal.release import Release
from shoal.run import LOCAL
from shoal.seen.findings import Findings
from shoal.seen.manifest import file_digest, is_manifest, read_manifest
from shoal.seen.opened import open_release
from shoal.seen.stores import brought
from shoal.switch import mend

if TYPE_CHECKING:
    from collections import Counter

    from numpy.typing import NDArray

    from shoal.seen.header import Header
    from shoal.seen.opened import SeenRelease

__all__ = ["read_release"]


def read_release(path: str | Path) -> Release:
    """Read a release of boxes or points back from a published file or address; its manifest must be there and match.

    Raises UnreadableFile if the file or manifest is missing or broken, if the hash differs, or if a value is not as the
    format says. Whether the release keeps its claim is for `verify` to say. Cost: linear.

    >>> read_release("nowhere.parquet")
    Traceback (most recent call last):
    shoal.errors.UnreadableFile: nowhere.parquet or its manifest is missing: not a release
    """
    try:
        with brought(path, LOCAL) as at_hand:
            return _read(Path(str(at_hand)))
    except CannotCheck as error:
        raise UnreadableFile(str(error)) from None


def _read(path: Path) -> Release:
    mend(path.parent)
    try:
        _require_unchanged(path, read_manifest(path))
        seen = open_release(path)
        header, file = seen.header, seen.file
        if header is None or (file is not None and not file.is_csv and file.stated != seen.manifest["shoal"]):
            raise _incomplete()
        return _release(seen, header)
    except CannotCheck:
        raise UnreadableFile(f"{path.name} can't be read as a release") from None


def _require_unchanged(path: Path, manifest: Any) -> None:
    """Raise UnreadableFile unless the file is the one that the manifest describes."""
    try:
        digest = file_digest(path)
    except OSError:
        manifest = None
    if manifest is None:
        raise UnreadableFile(f"{path.name} or its manifest is missing: not a release")
    if not is_manifest(manifest):
        raise UnreadableFile(f"the manifest of {path.name} is not one of a shoal release")
    if manifest["files"].get(path.name) != digest:
        raise UnreadableFile(f"{path.name} does not match its manifest: it was changed after publishing")


def _incomplete() -> UnreadableFile:
    return UnreadableFile("the file lacks columns or metadata of a shoal release")


def _release(seen: SeenRelease, header: Header) -> Release:
    """Make a release of an open file; its counts are those of the manifest."""
    counts, grid, stated = seen.manifest["counts"], header.grid, seen.stated
    method, parameters = stated.get("method"), stated.get("parameters")
    if not isinstance(method, str) or not isinstance(parameters, dict):
        raise _incomplete()
    return Release(
        frame=Frame(crs=grid.crs, cell_m=grid.cell_m, slot_s=grid.slot_s),
        method=method,
        parameters=parameters,
        claim=Claim.from_dict(stated["claim"]),
        suppressed=counts["samples_suppressed"],
        **_ROWS[seen.layout](seen, header),
    )


def _boxes(seen: SeenRelease, header: Header) -> dict[str, Any]:
    """Return the boxes of all records, identical records included, and how many people each record stands for."""
    findings = Findings()
    scan = seen.boxes(findings, header.grid)
    if scan is None:
        raise _incomplete()
    records, kinds = scan.records, scan.records.groups
    thin = scan.count is not None and bool((scan.count < 1).any())
    _require_well_formed(findings, scan.odd, records.uids, sound=bool(records.unique.sound.all()) and not thin)
    return {
        "offsets": offsets_of(records.unique.counts[kinds]),
        "layout": Boxes(records.unique.boxes[records.unique.rows(kinds)].astype(np.int32)),
        "multiplicity": None if scan.count is None else records.weights.astype(np.int32),
        "samples": seen.manifest["counts"]["samples_published"],
    }


def _points(seen: SeenRelease, header: Header) -> dict[str, Any]:  # noqa: ARG001  points are not on the grid
    findings = Findings()
    scan = seen.points(findings, keep=True)
    if scan is None:
        raise _incomplete()
    _require_well_formed(findings, scan.odd, scan.uids)
    return {
        "offsets": offsets_of(scan.counts),
        "layout": Points(*(scan.columns or _NO_POINTS)),
        "samples": int(scan.counts.sum()),
        "created": seen.manifest["counts"]["samples_created"],
        "seeded": seen.manifest["seeded"],
    }


def _require_well_formed(findings: Findings, odd: Counter[str], uids: NDArray[np.int64], *, sound: bool = True) -> None:
    """Raise UnreadableFile if a column, a value or a number of a record is not as the format says."""
    wrong = sum(number for kind, number in odd.items() if kind != "bytes")
    if findings.failures or wrong or not sound or not np.array_equal(uids, np.arange(len(uids))):
        raise UnreadableFile("the file holds values that no shoal release has; `shoal verify` says what is wrong")


_NO_POINTS = (np.empty(0, np.int64), np.empty(0), np.empty(0))
_ROWS = {"boxes": _boxes, "points": _points}
