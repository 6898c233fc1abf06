"""The private run record of a release: how the original was read when the release was made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import CannotCheck, InputError, SettingsError, UnreadableFile
from shoal.names import flag_of
from shoal.regular import read_regular
from shoal.release import Release
from shoal.seen.findings import Findings
from shoal.seen.header import parse_json
from shoal.seen.manifest import file_digest, read_manifest
from shoal.seen.stores import stored_hashes
from shoal.traces import Traces
from shoal.trajectories import Trajectories

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.reading.options import ReadOptions

__all__ = ["Recorded", "recorded_reading", "unreadable"]

_ENDING = ".run.json"
_MOST = 1 << 24  # bytes; a run record has some kilobytes
_HOURS = (900, 15 * 3600)  # the least and the greatest difference of two time zones, in seconds
_DRIFT = 7_200  # by which the first and the last time may be apart differently: clock changes, points dropped


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """The reading options to use for an original, and what the run record has to do with it.

    `taken` names the options that come from the record, `differ` those that were given otherwise than recorded. `file`
    is the name of the record, None if none was used; `strange` that of one that is of another release. `seconds` is
    how long the method ran. `in_memory` says that the original, or the release, is no file.
    """

    options: ReadOptions | None
    file: str | None = None
    strange: str | None = None
    taken: tuple[str, ...] = ()
    differ: tuple[str, ...] = ()
    seconds: float | None = None
    in_memory: bool = False

    @property
    def unsaid(self) -> bool:
        """Whether there is no record of how the original was read for the release."""
        return self.file is None and self.strange is None and not self.in_memory

    def note(self, findings: Findings) -> None:
        """Note where the options come from, unless they are just as given."""
        if self.taken:
            findings.note("options-recorded", file=self.file, names=_flags(self.taken))
        if self.differ:
            findings.note("options-differ", file=self.file, names=_flags(self.differ))
        if self.strange:
            findings.note("record-of-another", file=self.strange)

    def said(self) -> tuple[str, ...]:
        """Return these notes as sentences."""
        findings = Findings()
        self.note(findings)
        return tuple(findings.messages)

    def apart(self, original: tuple[int, int], release: tuple[int, int]) -> float | None:
        """Return by how many hours a release lies apart from its original, as if read in another time zone; or None.

        Input: the first and the last second of each.

        >>> Recorded(options=None).apart((0, 90_000), (28_800, 118_800))
        8.0
        """
        first, last = release[0] - original[0], release[1] - original[1]
        low, high = sorted((abs(first), abs(last)))
        if first * last <= 0 or low < _HOURS[0] or high > _HOURS[1] or high - low > _DRIFT:
            return None
        return round(first / 900) / 4

    def require_same_zone(self, original: tuple[int, int], release: tuple[int, int]) -> None:
        """Raise CannotCheck if the original seems to be read in another time zone than for the release.

        A `tz` that was given, or recorded, is believed.
        """
        given = self.options is not None and "tz" in self.options.model_fields_set
        if self.file is None and not given and (hours := self.apart(original, release)) is not None:
            raise CannotCheck(
                f"the release lies {hours:+g} h apart from the original, which seems to be read in another time zone "
                "than when the release was made; give the same `tz`, or the private run record: `run_record`"
            )


def recorded_reading(
    original: Any,
    release: str | Path | Release,
    options: ReadOptions | None,
    *,
    run_record: str | Path | None = None,
    audit: str | Path | pa.Table | None = None,
) -> Recorded:
    """Return how to read the original of a release: as recorded when it was made, with the given options on top.

    The record is `run_record`, else `RELEASE.run.json` beside the release or beside the audit file, where
    `shoal anonymize --audit` writes it. Raises CannotCheck if a record that was named can't be read, or is of another
    release.
    """
    if isinstance(original, Trajectories | Traces) or isinstance(release, Release):
        seconds = None if run_record is None else _seconds(_load(run_record))
        return Recorded(options=options, seconds=seconds, in_memory=True)
    path = Path(release)
    found = _load(run_record) if run_record is not None else None
    file = Path(run_record) if run_record is not None else _beside(path, audit)
    if file is None:
        return Recorded(options=options)
    if found is None:
        found = _load(file)
    if not _is_of(found, path):
        if run_record is not None:
            raise CannotCheck(f"{file.name} is the run record of another release; give the one written with this one")
        return Recorded(options=options, strange=file.name)
    return _merged(file.name, found, options)


def unreadable(error: InputError) -> str:
    """Return what to say if the original can't be read: the run record may know how it was read."""
    known = "; the run record knows how it was read for the release: `run_record`"
    return f"the original can't be read: {error}{'' if isinstance(error, UnreadableFile) else known}"


def _beside(release: Path, audit: str | Path | pa.Table | None) -> Path | None:
    folders = [release.parent, *([Path(audit).parent] if isinstance(audit, str | Path) else [])]
    files = (folder / f"{release.name}{_ENDING}" for folder in folders)
    return next((file for file in files if file.is_file()), None)


def _load(file: str | Path | None) -> dict[str, Any]:
    """Return a run record; raises CannotCheck if it is none."""
    wrong = CannotCheck("the run record can't be read; give the file that shoal anonymize wrote: `run_record`")
    try:
        record = parse_json(read_regular(file or "", _MOST))
    except OSError:
        raise wrong from None
    if not isinstance(record, dict):
        raise wrong
    return record


def _is_of(record: dict[str, Any], release: Path) -> bool:
    """Return whether a record is of this release: by the hash that the manifest states, or else by the file's own."""
    written = record.get("files")
    if not isinstance(written, dict):
        return False
    manifest = read_manifest(release)
    stated = manifest.get("files") if isinstance(manifest, dict) else None
    if (stored := stored_hashes(release)) is not None:
        return bool(written == stored)
    if isinstance(stated, dict):
        return bool(written == stated)
    try:
        return bool(written.get(release.name) == file_digest(release))
    except OSError:
        return False


def _merged(name: str, record: dict[str, Any], options: ReadOptions | None) -> Recorded:
    from shoal.reading.options import ReadOptions, read_options

    read = record.get("read")
    if read is None:  # the release was made of people in memory, who were not read by options
        return Recorded(options=options, file=name, seconds=_seconds(record))
    try:
        then = ReadOptions(**read)
    except (SettingsError, TypeError):
        raise CannotCheck(f"{name} holds reading options that are not known; give them as flags") from None
    usual = ReadOptions()
    recorded = {
        key: getattr(then, key) for key in ReadOptions.model_fields if getattr(then, key) != getattr(usual, key)
    }
    given = {} if options is None else {key: getattr(options, key) for key in options.model_fields_set}
    return Recorded(
        options=read_options(None, **{**recorded, **given}),
        file=name,
        taken=tuple(key for key in recorded if key not in given),
        differ=tuple(key for key, value in given.items() if value != getattr(then, key)),
        seconds=_seconds(record),
    )


def _seconds(record: dict[str, Any]) -> float | None:
    seconds = record.get("seconds")
    return float(seconds) if isinstance(seconds, int | float) else None


def _flags(names: tuple[str, ...]) -> str:
    return ", ".join(map(flag_of, names))
