"""Open a release of boxes or points, in a file or in memory, as an outsider would."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from shoal.claim import Claim
from shoal.errors import CannotCheck
from shoal.release import Release
from shoal.run import LOCAL, Run
from shoal.seen.audit import audit_of
from shoal.seen.file import open_release_file
from shoal.seen.grid import Grid
from shoal.seen.header import Header, read_header, truth_level
from shoal.seen.manifest import read_manifest
from shoal.seen.point_scan import scan_point_release, scan_points
from shoal.seen.records import records_of_release
from shoal.seen.scan import Scan, scan_file
from shoal.seen.track import track_of_file, track_of_release
from shoal.trajectories import Trajectories

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from shoal.reading.options import ReadOptions
    from shoal.seen.file import File
    from shoal.seen.findings import Findings
    from shoal.seen.point_scan import PointScan
    from shoal.seen.track import Track

__all__ = ["SeenRelease", "foreign_header", "open_release"]


class SeenRelease(Protocol):
    """An open release: what it states about itself, and its records, which are read on demand."""

    @property
    def layout(self) -> str:
        """What records are made of: boxes or points."""
        ...

    @property
    def file(self) -> File | None:
        """The published file; None for a release in memory."""
        ...

    @property
    def manifest(self) -> Any:
        """The content of the manifest beside the file; None if there is none, a string if it is not JSON."""
        ...

    @property
    def stated(self) -> Any:
        """The `shoal` object of the file, else of the manifest, as it is written; None if there is none."""
        ...

    @property
    def header(self) -> Header | None:
        """The grid, the claim and the method's parameters; None if these can't be understood."""
        ...

    @property
    def audit(self) -> pa.Table | None:
        """The audit, if the release itself has it: in memory, before it is published."""
        ...

    @property
    def suppressed(self) -> int:
        """The stated number of suppressed samples; 0 if none is stated."""
        ...

    def boxes(self, findings: Findings, grid: Grid, *, own: bool = True, run: Run = LOCAL) -> Scan | None:
        """Return the boxes on a grid, and the numbers of wrong values; see `scan_file`."""
        ...

    def points(self, findings: Findings, *, keep: bool, run: Run = LOCAL) -> PointScan | None:
        """Return the points of each record, and the numbers of wrong values; see `scan_points`."""
        ...

    def track(self) -> tuple[NDArray[np.int64], Track]:
        """Return the numbers of the records, and their places (degrees) and times; a box counts as its middle."""
        ...


def open_release(release: str | Path | Release) -> SeenRelease:
    """Open a release for `verify`, `attack` or `evaluate`.

    A publication into the same folder that was killed between its moves is finished first. Raises CannotCheck if the
    file can't be read. No code that makes releases is used. Cost: the footer of a file, and its manifest.
    """
    if isinstance(release, Release):
        return _InMemory(release)
    file = open_release_file(release)
    return _InFile(file, read_manifest(file.path))


def foreign_header(
    original: Any, options: ReadOptions | None, *, crs: str | None = None, claim: Claim | None = None
) -> Header:
    """Return the header of another tool's release, from the caller's options; raises CannotCheck without a grid."""
    claim = claim or Claim("none", why="unclaimed")
    if isinstance(original, Trajectories):
        frame = original.frame
        grid = Grid(frame.crs, frame.cell_m, frame.slot_s)
    elif options is None or not {"cell", "slot"} <= options.model_fields_set:
        raise CannotCheck("the release does not say on which grid it is; give `crs`, `cell` and `slot`")
    else:
        grid = Grid(crs or options.crs, options.cell, options.slot)
    return Header(grid, claim, claim.k, claim.tau_s, claim.epsilon_s)


@dataclass(frozen=True, eq=False)
class _InFile:
    """A published file, and the manifest beside it."""

    file: File
    manifest: Any
    audit: pa.Table | None = None

    @property
    def layout(self) -> str:
        """What records are made of, known from the columns."""
        return self.file.layout

    @property
    def stated(self) -> Any:
        """The `shoal` object of the file; for a CSV file, which has none, that of its manifest."""
        return self._said("shoal") if self.file.stated is None else self.file.stated

    @property
    def header(self) -> Header | None:
        """The header in the `shoal` object."""
        return read_header(self.stated)

    @property
    def suppressed(self) -> int:
        """The number of suppressed samples in the manifest, to two digits."""
        counts = self._said("counts")
        return (counts.get("samples_suppressed") or 0) if isinstance(counts, dict) else 0

    def _said(self, key: str) -> Any:
        return self.manifest.get(key) if isinstance(self.manifest, dict) else None

    def boxes(self, findings: Findings, grid: Grid, *, own: bool = True, run: Run = LOCAL) -> Scan | None:
        """Read the boxes in one pass."""
        return scan_file(findings, self.file, grid, own=own, run=run)

    def points(self, findings: Findings, *, keep: bool, run: Run = LOCAL) -> PointScan | None:
        """Read the points in one pass."""
        return scan_points(findings, self.file, keep=keep, run=run)

    def track(self) -> tuple[NDArray[np.int64], Track]:
        """Read the places and times."""
        return track_of_file(self.file)


@dataclass(frozen=True, eq=False)
class _InMemory:
    """A release that a method has just made, or that was read from its file."""

    release: Release
    file: File | None = None
    manifest: Any = None
    stated: Any = None

    @property
    def layout(self) -> str:
        """What records are made of."""
        return self.release.layout.name

    @property
    def header(self) -> Header:
        """The header that the release states; fields missing in its claim come from the parameters."""
        release = self.release
        frame, asked = release.frame, ("k", "tau_s", "epsilon_s")
        k, tau_s, epsilon_s = (getattr(release.claim, name) or release.parameters.get(name) for name in asked)
        truth = truth_level(release.method, release.parameters, release.claim.name)
        grid = Grid(frame.crs, frame.cell_m, frame.slot_s)
        settings = release.parameters
        return Header(grid, release.claim, k, tau_s, epsilon_s, truth, release.method, settings)

    @property
    def audit(self) -> pa.Table | None:
        """The audit, if the release knows its members."""
        return audit_of(self.release)

    @property
    def suppressed(self) -> int:
        """The number of suppressed samples."""
        return self.release.suppressed

    def boxes(
        self,
        findings: Findings,  # noqa: ARG002  in memory nothing can be written in a wrong form
        grid: Grid,  # noqa: ARG002  boxes in memory are on the release's own
        *,
        own: bool = True,  # noqa: ARG002
        run: Run = LOCAL,
    ) -> Scan | None:
        """Return the boxes; raises SettingsError for points."""
        return Scan(records_of_release(self.release, run=run), Counter(), None, None)

    def points(
        self,
        findings: Findings,  # noqa: ARG002
        *,
        keep: bool,  # noqa: ARG002  they are there
        run: Run = LOCAL,  # noqa: ARG002
    ) -> PointScan | None:
        """Return the points of each record; raises SettingsError for boxes."""
        return scan_point_release(self.release)

    def track(self) -> tuple[NDArray[np.int64], Track]:
        """Return the places and times."""
        return track_of_release(self.release)
