"""From events to a verified release: the recipe behind `shoal anonymize`, `shoal.publish` and `Release.write`."""

from __future__ import annotations

import hashlib
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.coredumps import without_core_dumps
from shoal.errors import InputError, NotVerified, OutputError, SettingsError
from shoal.folders import drop_kept, kept_folder, require_different
from shoal.interrupt import raise_if_asked
from shoal.judgement import judged
from shoal.methods import make_method
from shoal.notebook import Displayed
from shoal.publishing.ledger import open_book
from shoal.publishing.stage import Outputs, refuse_form, stage
from shoal.reading.account import Account
from shoal.reading.options import read_options
from shoal.reading.sources import expand
from shoal.run import LOCAL
from shoal.store import Folder
from shoal.stores.addresses import address_of, same_place, shown
from shoal.verifier import MAX_SUPPRESSED, verify, with_measured_claim

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from shoal.methods import Estimate, Method
    from shoal.publishing.ledger import Overlap
    from shoal.publishing.signing import SigningKey
    from shoal.publishing.stage import Staged
    from shoal.reading.options import ReadOptions
    from shoal.release import Release
    from shoal.run import Run
    from shoal.traces import Traces
    from shoal.trajectories import Trajectories
    from shoal.verifier import Verdict

__all__ = ["Published", "publish", "publish_release"]

_SAMPLE_BYTES = 12
# How figures are printed: a word for each, and its form.
_PRINTED: dict[str, tuple[str, Callable[[float], str]]] = {
    "people": ("people", lambda n: f"{n:,}"),
    "people_left_out": ("people left out", lambda n: f"{n:,}"),
    "records": ("records", lambda n: f"{n:,}"),
    "boxes": ("boxes", lambda n: f"{n:,}"),
    "points": ("points", lambda n: f"{n:,}"),
    "samples": ("samples inside them", lambda n: f"{n:,}"),
    "traces_discarded": ("traces discarded", lambda n: f"{n:,}"),
    "fixes_discarded": ("fixes in them", lambda n: f"{n:,}"),
    "side_m_median": ("side of a box, median", lambda m: f"{m / 1000:.2f} km"),
    "side_m_mean": ("side of a box, mean", lambda m: f"{m / 1000:.2f} km"),
    "duration_s_median": ("duration of a box, median", lambda s: f"{s / 60:.0f} min"),
    "duration_s_mean": ("duration of a box, mean", lambda s: f"{s / 60:.0f} min"),
    "seconds": ("seconds", lambda s: f"{s:.1f}"),
}


@dataclass(frozen=True, kw_only=True, repr=False)
class Published(Displayed):
    """The result of `publish`: dropped rows, the estimate and, unless it was a dry run, the release and its verdict.

    `account` counts the rows that were read and dropped. The records of `release` are in the order in which they were
    made, which is not the order in the file. If a ledger was named, `overlap` counts the people who are in its earlier
    releases. `judgement` says in words what is wrong with its precision, and what to try. `notes` are warnings.
    """

    account: Account
    estimate: Estimate
    release: Release | None = None
    verdict: Verdict | None = None
    overlap: Overlap | None = None
    judgement: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    def summary(self) -> list[tuple[str, Any]]:
        """Return the claim, whether it was verified, and the figures as printed."""
        if self.release is None:
            return [("published", False), *self.estimate.table()]
        verified = self.verdict is not None and self.verdict.ok
        return [("claim", str(self.release.claim)), ("verified", verified), *self.table()]

    def figures(self) -> dict[str, Any]:
        """Return the release in figures: size and precision."""
        if self.release is None:
            return {}
        release, rows = self.release, self.release.layout
        people = {} if release.members is None else {"people": len(release.members.people.labels)}
        size: dict[str, Any] = {**people, "people_left_out": release.people_left_out}
        size |= {"records": len(release), rows.name: len(rows)}
        if rows.traced:
            size |= {"traces_discarded": release.discarded, "fixes_discarded": release.suppressed}
        else:
            size |= {"samples": release.samples}
        return {**size, **rows.precision(release.frame), "seconds": self.seconds}

    def table(self) -> list[tuple[str, str]]:
        """Return the figures as printable rows."""
        return [(_PRINTED[name][0], _PRINTED[name][1](value)) for name, value in self.figures().items()]

    def to_dict(self) -> dict[str, Any]:
        """Return the dictionary that `--json` prints."""
        return {
            "ok": True,
            "published": self.release is not None,
            "claim": self.release.claim.to_dict() if self.release else None,
            "figures": self.figures(),
            "account": self.account.to_dict(),
            "estimate": asdict(self.estimate),
            "verdict": None if self.verdict is None else self.verdict.to_dict(),
            "overlap": self.overlap.to_dict() if self.overlap else None,
            "judgement": list(self.judgement),
            "notes": list(self.notes),
        }


@without_core_dumps()
def publish(
    source: str | Path | Sequence[str | Path],
    path: str | Path,
    method: Method | str,
    *,
    audit: str | Path | None = None,
    run_record: str | Path | None = None,
    ledger: str | Path | None = None,
    allow_overlap: bool = False,
    overwrite: bool = False,
    geo: bool = False,
    compact: bool = False,
    sign: str | Path | SigningKey | None = None,
    seed: int | None = None,
    dry_run: bool = False,
    resume: bool = False,
    options: ReadOptions | None = None,
    run: Run = LOCAL,
    **reading: Any,
) -> Published:
    """Read, anonymize, write, verify the written file and publish it: `shoal anonymize` in Python.

    Parameters
    ----------
    source
        Files, folders or globs of events, or addresses (`postgresql://…?table=…`, `s3://…`).
    path
        The release to write, `.parquet` or `.csv`; its manifest is written beside it. Or an address: a table of
        PostgreSQL, an object.
    method
        A method with its settings, e.g. `shoal.Shoal(k=5)`, or the name of one.
    audit, run_record
        Private files to write (mode 0600): who is in which record; settings, exact counts and dropped rows.
    ledger, allow_overlap
        A private file that remembers who was published. A release of people who are in an earlier one is refused,
        unless `allow_overlap` is true.
    overwrite, geo, compact
        Replace existing files; add the boxes as WGS84 polygons; write identical records once, with a count.
    sign
        Sign the manifest with this key: a PEM file (Ed25519), or a `SigningKey`. Needs the extra `sign`.
    seed
        Make random draws repeatable, for research. Only `k-anonymity` is still claimed then; other claims become
        `none (research)`.
    dry_run, resume
        Only read and estimate; keep finished work if the run is interrupted, and continue from it next time.
    options, **reading
        How to read: `ReadOptions`, or its fields as keywords (`tz="Africa/Dakar"`).
    run
        Threads, memory and the folder for temporary files.

    Returns
    -------
    Published
        The dropped rows, the estimate, the release and its verdict.

    Guarantee: if the function returns, and it was no dry run, a complete release is at `path`. The verifier has shown
    its claim on the file, without any code of the methods. If the function raises, nothing is published, and a release
    that was there before is unchanged. Until it returns, the process writes no core dumps (`shoal.coredumps`).

    >>> import tempfile
    >>> import shoal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     events = Path(folder, "events.parquet")
    ...     shoal.synthesize(events, users=60, days=2, seed=1)
    ...     done = publish(events, Path(folder, "release.parquet"), shoal.Shoal(k=3))
    >>> done.verdict.ok, str(done.release.claim)
    (True, 'k-anonymity(3)')
    """
    if hasattr(source, "columns"):
        raise InputError(
            "publish reads files, since the verifier reads them again: write the frame to one first, or call "
            "method.anonymize(shoal.from_pandas(frame)).write(path)"
        )
    if isinstance(method, type):
        raise SettingsError(f"give a method with its settings, not its class: shoal.{method.__name__}(…)")
    inputs = [source] if isinstance(source, str | Path) else list(source)
    outputs = Outputs.at(
        path,
        audit=audit,
        run_record=run_record,
        ledger=ledger,
        allow_overlap=allow_overlap,
        overwrite=overwrite,
        geo=geo,
        compact=compact,
        sign=sign,
        work_dir=run.work_dir,
    )
    chosen = make_method(method, {}) if isinstance(method, str) else method
    done: list[Staged] = []
    try:
        return _publish(
            inputs,
            outputs,
            chosen,
            read_options(options, **reading),
            seed=seed,
            dry_run=dry_run,
            resume=resume,
            run=run,
            staged_as=done.append,
        )
    except KeyboardInterrupt:
        if done and done[0].published:
            raise KeyboardInterrupt("stopped after the release was published") from None
        kept = "; the same command continues from here" if resume else ""
        raise KeyboardInterrupt(f"stopped; nothing was published{kept}") from None


def publish_release(
    release: Release,
    path: str | Path,
    *,
    audit: str | Path | None = None,
    run_record: str | Path | None = None,
    overwrite: bool = False,
    geo: bool = False,
    compact: bool = False,
    sign: str | Path | SigningKey | None = None,
    seed: int | None = None,
    run: Run = LOCAL,
) -> Release:
    """Verify and publish a release that is in memory; return it with its records as they are numbered in the file.

    The written file is verified against the people it was made of before anything is published; raises NotVerified.
    What a claim about windows says of leakage is measured first. A release that was read from a file is written as it
    is. The options are those of `publish`.
    """
    outputs = Outputs.at(
        path,
        audit=audit,
        run_record=run_record,
        overwrite=overwrite,
        geo=geo,
        compact=compact,
        sign=sign,
        work_dir=run.work_dir,
    )
    outputs.refuse()
    with outputs.claimed(), stage(with_measured_claim(release, run=run), outputs, seed=seed) as staged:
        if release.members is not None:
            k = release.claim.k or release.parameters.get("k")
            verify(
                release.members.people, staged.path, k=k, audit=staged.audit, public_key=outputs.public_key, run=run
            ).raise_if_broken()
        return staged.publish().renumbered()


def _publish(
    inputs: Sequence[str | Path],
    outputs: Outputs,
    chosen: Method,
    options: ReadOptions,
    *,
    seed: int | None,
    dry_run: bool,
    resume: bool,
    run: Run,
    staged_as: Callable[[Staged], None],
) -> Published:
    started = time.perf_counter()
    _refuse_outputs([*inputs, *([options.cells] if options.cells else [])], outputs)
    _refuse_settings(outputs, chosen, options, seed=seed, resume=resume)
    run = replace(run, work_dir=run.work_dir or outputs.path.parent)
    with outputs.claimed():
        book = open_book(outputs.ledger, allow_overlap=outputs.allow_overlap)
        people = chosen.read(inputs, options=options, run=run)
        refuse_form(outputs, chosen.claim, people.frame.crs)
        account = people.account or Account(rows_read=0)
        estimate = _affordable(chosen, people, run)
        book.meet(people)
        raise_if_asked()
        if dry_run:
            return Published(account=account, estimate=estimate)
        with _finished_parts(chosen, people, outputs, run, resume=resume) as keeping:
            begun = time.perf_counter()
            release = chosen.anonymize(people, seed=seed, run=keeping)
            record = _record(chosen, time.perf_counter() - begun)
            _refuse_losses(release, chosen)
            release = with_measured_claim(release, run=run)
            with stage(release, outputs, seed=seed, record=record) as staged:
                staged_as(staged)
                verdict = _verified(inputs, staged, release, chosen.among, options, outputs.public_key, run)
                seen = None if outputs.address is None else lambda: staged.published
                with book.entered(release, staged.path, outputs.path, elsewhere=seen) as also:
                    published = staged.publish(also)
    return Published(
        account=account,
        estimate=estimate,
        release=published.release,
        verdict=verdict,
        overlap=book.overlap,
        judgement=judged(published.release, chosen),
        notes=book.notes,
        seconds=time.perf_counter() - started,
    )


def _verified(
    inputs: Sequence[str | Path],
    staged: Staged,
    release: Release,
    k: int | None,
    options: ReadOptions,
    public_key: bytes | None,
    run: Run,
) -> Verdict:
    """Return the verdict on the staged file; raises NotVerified unless it holds."""
    verdict = verify(
        list(inputs),
        staged.path,
        k=k,
        audit=staged.audit,
        options=options,
        public_key=public_key,
        run=run.within(_left(run.memory, release)),
    )
    if not verdict.ok:
        raise NotVerified(
            f"the release did not verify ({', '.join(verdict.failures)}); nothing was published. "
            "This is a fault of shoal: please report it"
        )
    raise_if_asked()
    return verdict


def _left(memory: int | None, release: Release) -> int | None:
    """Return the memory that the limit leaves for the check, besides the release and the samples."""
    if memory is None:
        return None
    return max(memory // 4, memory - release.nbytes - _SAMPLE_BYTES * release.samples)


def _refuse_settings(outputs: Outputs, chosen: Method, options: ReadOptions, *, seed: int | None, resume: bool) -> None:
    """Check, before any work, that the settings go together; raises SettingsError."""
    refuse_form(outputs, chosen.claim, "unknown yet")
    if chosen.takes != "fixes":
        options.require_whole_users()
    if seed is not None and seed < 0:
        raise SettingsError("a seed is a whole number from 0 on")
    if resume and not chosen.resumable:
        raise SettingsError(f"{chosen.name} can't be resumed; leave out `resume`")
    if outputs.allow_overlap and outputs.ledger is None:
        raise SettingsError("`allow_overlap` goes with `ledger`: without a ledger nobody looks for overlap")


def _refuse_outputs(inputs: Sequence[str | Path], outputs: Outputs) -> None:
    """Check, before any work, that no output exists or is an input; only a ledger may exist."""
    addresses = [one for one in map(address_of, inputs) if one is not None]
    if outputs.address is not None and any(same_place(outputs.address, one) for one in addresses):
        raise OutputError(f"{shown(outputs.address)} is an input; an input is never overwritten")
    inputs = [one for one in inputs if address_of(one) is None]
    files = expand(inputs) if inputs else []
    require_different(outputs.written, files)
    for target in outputs.written:
        folders = [Path(path).resolve() for path in inputs if Path(path).is_dir()]
        if any(folder in target.resolve().parents for folder in folders):
            raise OutputError(f"{target.name} lies in a folder that is read; put it elsewhere")
    outputs.refuse()


def _affordable(method: Method, people: Trajectories | Traces, run: Run) -> Estimate:
    """Estimate the work; raise TooLarge if it won't fit into memory."""
    method.require(people)
    estimate = method.estimate(people, run=run)
    run.require_room(estimate.memory_bytes, method.name, method.less_memory, held=people.nbytes)
    return estimate


@contextmanager
def _finished_parts(
    method: Method, people: Trajectories | Traces, outputs: Outputs, run: Run, *, resume: bool
) -> Iterator[Run]:
    """Yield the run, with a store of finished parts if it should resume; the store is kept until all is published."""
    if not resume:
        drop_kept(run.scratch, outputs.path.name)
        yield run
        return
    with kept_folder(run.scratch, outputs.path.name, _fingerprint(method, people)) as folder:
        yield replace(run, store=Folder(folder))


def _fingerprint(method: Method, people: Trajectories | Traces) -> str:
    """Return a hash of all that finished parts depend on: the code, the method's settings and the samples."""
    digest = hashlib.sha256(f"{method.name} {method!r}".encode())
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    for array in people.arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:32]


def _refuse_losses(release: Release, method: Method) -> None:
    """Check that the settings leave out no more than the verifier allows, and not everything; raises SettingsError."""
    everything = release.samples + release.suppressed
    if not len(release) and method.among is None:
        raise SettingsError(f"nothing is left to publish: {method.less_loss}")
    if method.among is not None and release.suppressed > MAX_SUPPRESSED * everything:
        raise SettingsError(
            f"{release.suppressed / everything:.0%} of the samples would be left out, more than {MAX_SUPPRESSED:.0%}; "
            f"{method.less_loss}"
        )


def _record(method: Method, seconds: float) -> dict[str, Any]:
    """Return what the private run record says of the method: its settings, and how long it ran."""
    import shoal

    return {
        "version": shoal.__version__,
        "method": method.name,
        "parameters": method.model_dump(),
        "seconds": round(seconds, 3),
    }
