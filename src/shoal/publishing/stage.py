"""Stage and publish a release; no other module publishes data.

`with stage(release, outputs) as staged:` writes everything into private folders beside the outputs. The caller checks
the staged file there. `staged.publish()` then switches all files into place, the manifest last, as one step that no
signal can split. A data file without a valid manifest is not a release.

If the output is an address (a table, an object), the data file and its manifest are written into a private folder.
A target takes them from there (`shoal.publishing.targets`), and what is verified is what the target holds. The private
files are switched into place first; the target's commit is the last step of that switch.
"""

from __future__ import annotations

import hashlib
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import OutputError, SettingsError
from shoal.folders import claimed, private_folder, refuse_existing, require_different, require_names
from shoal.interrupt import undisturbed
from shoal.lists import offsets_of
from shoal.publishing.audit import audit_table
from shoal.publishing.files import PRIVATE, PUBLIC, write_json, write_tables
from shoal.publishing.manifest import manifest, manifest_path, run_record, run_record_path
from shoal.publishing.numbering import numbered, taken
from shoal.publishing.schema import release_batches
from shoal.publishing.signing import signing_key
from shoal.publishing.targets import open_target, refuse_target
from shoal.release import Members
from shoal.stores.addresses import DATABASES, address_of, file_name, scheme_of
from shoal.switch import Undecided, switch

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from shoal.claim import Claim
    from shoal.publishing.numbering import Numbered
    from shoal.publishing.signing import SigningKey
    from shoal.publishing.targets import Target
    from shoal.release import Release

__all__ = ["Outputs", "Staged", "refuse_form", "stage"]


@dataclass(frozen=True)
class Outputs:
    """Where and how a release is published.

    Parameters
    ----------
    path
        The data file, `.parquet` or `.csv`. Its folder must exist.
    address
        The database or object store that the release goes to; `path` is then only where it is staged.
    audit, run_record
        Private files (mode 0600): who is in which record; the settings and the exact counts. With an audit file, a
        run record is written too: `PATH.run.json` beside the audit file, if no other name is given.
    ledger, allow_overlap
        The private book of releases: people who are in an earlier release of it are refused, unless allowed.
    overwrite
        Replace what is there. Otherwise AlreadyExists.
    geo
        Add a column of WGS84 geometry (GeoParquet): polygons of boxes, or points.
    sign
        The key to sign the manifest with.
    compact
        Of boxes: publish identical records once with their `count`.

    Raises OutputError if two of the files are the same or a name can't be used, SettingsError if a table is to be
    signed.
    """

    path: Path
    address: str | None = field(default=None, kw_only=True, repr=False)
    audit: Path | None = field(default=None, kw_only=True)
    run_record: Path | None = field(default=None, kw_only=True)
    ledger: Path | None = field(default=None, kw_only=True)
    allow_overlap: bool = field(default=False, kw_only=True)
    overwrite: bool = field(default=False, kw_only=True)
    geo: bool = field(default=False, kw_only=True)
    compact: bool = field(default=False, kw_only=True)
    sign: SigningKey | None = field(default=None, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if self.sign is not None and self.address is not None and scheme_of(self.address) in DATABASES:
            raise SettingsError("`sign` goes with files and objects; a table of a database is no file to sign")
        require_names(self.written)
        require_different(self.written)

    @classmethod
    def at(
        cls,
        path: str | Path,
        *,
        audit: str | Path | None = None,
        run_record: str | Path | None = None,
        ledger: str | Path | None = None,
        work_dir: Path | None = None,
        sign: str | Path | SigningKey | None = None,
        **how: bool,
    ) -> Outputs:
        """Return the outputs at paths that may be text; with an audit file there is a run record beside it.

        `work_dir` is where a release for an address is staged.
        """
        private = {"audit": audit, "run_record": run_record, "ledger": ledger}
        paths = {name: None if file is None else Path(file) for name, file in private.items()}
        address = address_of(path)
        if address is not None:
            path = (work_dir or Path(tempfile.gettempdir())) / file_name(address)
        for name, file in {"release": Path(path), **paths}.items():
            if file is not None and file.name in ("", ".."):
                what = name.replace("_", " ")
                raise OutputError(f"{what}: this is no name of a file; name one, e.g. {name}.parquet")
        if audit is not None and run_record is None:
            paths["run_record"] = run_record_path(Path(path), Path(audit))
        return cls(Path(path), address=address, sign=signing_key(sign), **paths, **how)  # type: ignore[arg-type]  # each has its own type

    @property
    def public_key(self) -> bytes | None:
        """The public key by which the manifest is signed, if it is."""
        return None if self.sign is None else self.sign.public

    @property
    def files(self) -> list[Path]:
        """All local files that are written: the data file and its manifest, if they are files, and the private ones."""
        public = [self.path, manifest_path(self.path)] if self.address is None else []
        return [*public, *(path for path in (self.audit, self.run_record) if path)]

    @property
    def written(self) -> list[Path]:
        """All local files that are written, the ledger too."""
        return [*self.files, *([self.ledger] if self.ledger else [])]

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Keep other runs from these files until the block ends; raises OutputError, AlreadyExists."""
        with claimed(self.written):
            refuse_existing(self.files, overwrite=self.overwrite)  # another run may have just ended
            yield

    def refuse(self) -> None:
        """Check that all can be written where it should be; raises AlreadyExists, OutputError, SettingsError."""
        refuse_existing(self.files, overwrite=self.overwrite)
        refuse_target(self)


class Staged:
    """A release that is written but not yet published: `path` is the data file, `audit` the table of who is in it.

    If the release goes to a database, `path` is a file with what the database holds.
    """

    def __init__(
        self,
        numbers: Numbered,
        audit: pa.Table | None,
        path: Path,
        files: list[tuple[Path, Path]],
        target: Target,
        *,
        overwrite: bool,
    ) -> None:
        self.numbers, self.audit, self.path = numbers, audit, path
        self._files, self._target, self._overwrite = files, target, overwrite
        self.published = False

    def publish(self, also: list[tuple[Path, Path]] | None = None) -> Numbered:
        """Move all files into place at once; return the published release with its numbers.

        `also` are pairs of a new private file and its place, which go with them: a ledger.

        Guarantee: afterwards the whole new release is there; if it raises, the files that were there before are back.
        A signal in between is ignored. If the run is killed in between, the next command finishes its work.
        """
        self._target.send()
        commit = None if self._target.local else self._target.commit
        with undisturbed(too_late=True):
            try:
                if self._files:
                    switch(self._files, overwrite=self._overwrite, also=also, commit=commit)
                else:
                    self._target.commit()
            except Undecided:
                self.published = True
                raise
            self.published = True
        return self.numbers


@contextmanager
def stage(
    release: Release, outputs: Outputs, *, seed: int | None = None, record: dict[str, Any] | None = None
) -> Iterator[Staged]:
    """Write a release into private folders beside its outputs; they are removed if the block does not publish it.

    Input: what a method made; its records get fresh pseudonyms in random order (from the OS, or from `seed`). A seeded
    release claims `k-anonymity` or nothing: seeds can be guessed. `record` is what the run
    record holds besides the exact counts and the seed. Raises SettingsError for what does not go together,
    AlreadyExists, OutputError. Memory: some batches of a million rows; the records are brought into their order on the
    way.
    """
    refuse_form(outputs, release.claim, release.frame.crs)
    outputs.refuse()
    if outputs.audit is not None and release.members is None:
        raise SettingsError("this release was read from a file: who is in which record is not known")
    numbers = numbered(_compacted(release) if outputs.compact else release, seed)
    audit = audit_table(numbers.release, numbers.members())
    with _typed_errors(), ExitStack() as folders:
        target = folders.enter_context(open_target(outputs))
        parents = dict.fromkeys(path.parent for path in [outputs.path, *outputs.files])
        private = {parent: folders.enter_context(private_folder(parent)) for parent in parents}
        new = {path: private[path.parent] / path.name for path in outputs.files}
        data = private[outputs.path.parent] / outputs.path.name
        drawn = outputs.geo if target.shapes is None else release.layout.shape in target.shapes
        geo = drawn and release.frame.crs is not None
        rows = release_batches(numbers.release, numbers.order, geo=geo)
        write_tables(data, rows, PUBLIC, **release.layout.encoding)
        public = manifest(numbers.release, data, seeded=seed is not None)
        if outputs.sign is not None:
            public = outputs.sign.sign(public)
        write_json(manifest_path(data), public, PUBLIC)
        held = target.receive(data)
        if outputs.audit is not None and audit is not None:
            write_tables(new[outputs.audit], iter([audit]), PRIVATE)
        if outputs.run_record is not None:
            files = target.files or public["files"]
            write_json(new[outputs.run_record], run_record(numbers.release, files, record or {}, seed), PRIVATE)
        shown = [outputs.path, manifest_path(outputs.path)]  # the manifest last
        moved = [(new[path], path) for path in sorted(outputs.files, key=lambda path: path in shown)]
        yield Staged(numbers, audit, held, moved, target, overwrite=outputs.overwrite)


@contextmanager
def _typed_errors() -> Iterator[None]:
    """Raise OutputError for an error of the system, e.g. when a staged file is read again. Publishing has its own."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"a staged file is lost ({error.strerror or 'I/O error'}); nothing was published") from None


def refuse_form(outputs: Outputs, claim: Claim, crs: str | None) -> None:
    """Check that endings and options go together. Raises SettingsError."""
    for file in (outputs.path, outputs.audit):
        if file is not None and file.suffix.lower() not in {".parquet", ".csv"}:
            raise SettingsError("a release or audit file must end in .parquet or .csv")
    if outputs.geo and outputs.path.suffix.lower() != ".parquet":
        raise SettingsError("`geo` writes GeoParquet: the release must end in .parquet")
    if outputs.geo and crs is None:
        raise SettingsError("`geo` needs geography: this data came as grid cells without a CRS")
    if outputs.compact and claim.name != "k-anonymity":
        raise SettingsError("`compact` needs identical records: it goes with methods that claim k-anonymity")


def _compacted(release: Release) -> Release:
    """Keep one record of each group of identical ones, with the number of users it stands for."""
    first: dict[bytes, int] = {}
    boxes = np.ascontiguousarray(release.boxes)
    digests = (hashlib.sha256(boxes[start:stop].data).digest() for start, stop in pairwise(release.offsets.tolist()))
    group = np.array([first.setdefault(digest, record) for record, digest in enumerate(digests)], np.int64)
    kept, counts = np.unique(group, return_counts=True)
    members = release.members
    if members is not None:
        by_group = np.argsort(group, kind="stable")
        members = Members(members.owners[kept], offsets_of(counts), members.owners[by_group], members.people)
    offsets, layout = taken(release.offsets, release.layout, kept)
    return replace(release, offsets=offsets, layout=layout, members=members, multiplicity=counts.astype(np.int32))
