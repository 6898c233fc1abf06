"""From files of events to a verified release: the recipe behind `shoal anonymize`."""

from __future__ import annotations

import hashlib
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import NotVerified, OutputError, SettingsError
from shoal.folders import drop_kept, kept_folder, refuse_existing
from shoal.interrupt import raise_if_asked
from shoal.memory import require_memory
from shoal.methods import METHODS, BoxMethod, PointMethod
from shoal.points import PointRelease
from shoal.publishing.ledger import open_book
from shoal.publishing.write import manifest_path, refuse_form, write_release
from shoal.reading import read, read_traces
from shoal.reading.account import Account
from shoal.reading.sources import expand
from shoal.release import Release
from shoal.run import LOCAL, Run
from shoal.store import Folder
from shoal.traces import Traces
from shoal.verifier import MAX_SUPPRESSED, verify, with_measured_claim

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from shoal.methods import Estimate, Method
    from shoal.publishing.ledger import Overlap
    from shoal.reading.options import ReadOptions
    from shoal.trajectories import Trajectories
    from shoal.verifier import Verdict

__all__ = ["Outputs", "Published", "publish"]

_SAMPLE_BYTES = 12


@dataclass(frozen=True)
class Outputs:
    """Where and how a release is written; see `shoal.publishing.write.write_release`.

    With a `ledger`, people who are in an earlier release of it are refused, unless `allow_overlap`.
    """

    path: Path
    audit: Path | None = field(default=None, kw_only=True)
    run_record: Path | None = field(default=None, kw_only=True)
    ledger: Path | None = field(default=None, kw_only=True)
    allow_overlap: bool = field(default=False, kw_only=True)
    overwrite: bool = field(default=False, kw_only=True)
    geo: bool = field(default=False, kw_only=True)
    compact: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, kw_only=True)
class Published:
    """What a run did: the cleaning, the estimate and, unless it was a dry run, the release and its verdict.

    The records of `release` are in the order in which they were made, not published. `overlap` says, where a ledger
    was named, who is in earlier releases of it; `notes` what went less than well.
    """

    account: Account
    estimate: Estimate
    release: Release | PointRelease | None = None
    verdict: Verdict | None = None
    overlap: Overlap | None = None
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    def figures(self) -> dict[str, Any]:
        """Return the release in figures: size and precision."""
        if self.release is None:
            return {}
        if isinstance(self.release, PointRelease):
            return {
                "records": len(self.release),
                "points": self.release.samples,
                "traces_discarded": self.release.discarded,
                "fixes_discarded": self.release.suppressed,
                "seconds": self.seconds,
            }
        side_m, duration_s = self.release.spans()
        return {
            "records": len(self.release),
            "boxes": len(self.release.boxes),
            "samples": self.release.samples,
            "side_m_median": float(np.median(side_m)),
            "side_m_mean": float(side_m.mean()),
            "duration_s_median": float(np.median(duration_s)),
            "duration_s_mean": float(duration_s.mean()),
            "seconds": self.seconds,
        }

    def table(self) -> list[tuple[str, Any]]:
        """Return the figures as lines to print."""
        of = self.figures()
        if "points" in of:
            return [
                ("records", of["records"]),
                ("points", of["points"]),
                ("traces discarded", of["traces_discarded"]),
                ("fixes in them", of["fixes_discarded"]),
                ("seconds", f"{of['seconds']:.1f}"),
            ]
        return [
            ("records", of["records"]),
            ("boxes", of["boxes"]),
            ("samples inside them", of["samples"]),
            ("side of a box, median", f"{of['side_m_median'] / 1000:.2f} km"),
            ("side of a box, mean", f"{of['side_m_mean'] / 1000:.2f} km"),
            ("duration of a box, median", f"{of['duration_s_median'] / 60:.0f} min"),
            ("duration of a box, mean", f"{of['duration_s_mean'] / 60:.0f} min"),
            ("seconds", f"{of['seconds']:.1f}"),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the form that `--json` prints."""
        return {
            "ok": True,
            "published": self.release is not None,
            "claim": self.release.claim.to_dict() if self.release else None,
            "figures": self.figures(),
            "account": self.account.to_dict(),
            "estimate": asdict(self.estimate),
            "verdict": self.verdict.to_dict() if self.verdict else None,
            "overlap": self.overlap.to_dict() if self.overlap else None,
            "notes": list(self.notes),
        }


def publish(
    inputs: Sequence[str | Path],
    outputs: Outputs,
    *,
    method: str,
    parameters: dict[str, Any],
    options: ReadOptions,
    seed: int | None = None,
    dry_run: bool = False,
    resume: bool = False,
    run: Run = LOCAL,
) -> Published:
    """Read, anonymize, write, verify from the written file, publish.

    Guarantee: if it returns (and was no dry run), a whole release is at `outputs.path` whose claim was shown on
    the file by code that shares nothing with the method; if it raises, nothing is published.
    """
    try:
        return _publish(
            inputs, outputs, _method(method, parameters), options, seed=seed, dry_run=dry_run, resume=resume, run=run
        )
    except KeyboardInterrupt:
        kept = "; the same command goes on from here" if resume else ""
        raise KeyboardInterrupt(f"stopped; nothing was published{kept}") from None


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
) -> Published:
    started = time.perf_counter()
    _refuse_outputs([*inputs, *([options.cells] if options.cells else [])], outputs)
    _refuse_settings(outputs, chosen, options, seed=seed, resume=resume)
    run = replace(run, work_dir=run.work_dir or outputs.path.parent)
    with open_book(outputs.ledger, allow_overlap=outputs.allow_overlap) as book:
        people = _people(inputs, chosen, options, run)
        _refuse_form(outputs, chosen, people.frame.crs)
        account = people.account or Account(rows_read=0)
        estimate = _affordable(chosen, people, run)
        book.meet(people)
        raise_if_asked()
        if dry_run:
            return Published(account=account, estimate=estimate)
        with _finished_parts(chosen, people, outputs, run, resume=resume) as keeping:
            begun = time.perf_counter()
            release = _made(chosen, people, seed, keeping)
            record = _record(chosen, options, account, time.perf_counter() - begun)
            if isinstance(release, Release) and isinstance(chosen, BoxMethod):
                _refuse_losses(release, chosen.less_loss)
                release = with_measured_claim(release, run=run)
            verdicts: list[Verdict] = []

            def check(written: Path, audit: pa.Table | None) -> None:
                verdicts.append(_verified(inputs, written, audit, release, chosen.among, options, run))
                book.intend(release, written, outputs.path)

            published = write_release(
                release,
                outputs.path,
                audit=outputs.audit,
                run_record=outputs.run_record,
                record=record,
                overwrite=outputs.overwrite,
                geo=outputs.geo,
                compact=outputs.compact,
                seed=seed,
                check=check,
            )
            book.confirm()
    return Published(
        account=account,
        estimate=estimate,
        release=published.release,
        verdict=verdicts[0],
        overlap=book.overlap,
        notes=book.notes,
        seconds=time.perf_counter() - started,
    )


def _people(inputs: Sequence[str | Path], method: Method, options: ReadOptions, run: Run) -> Trajectories | Traces:
    """Read what the method takes: samples on the grid, or fixes as they are."""
    reader = read_traces if method.takes == "fixes" else read
    return reader(inputs, options=options, run=run)


def _made(method: Method, people: Trajectories | Traces, seed: int | None, run: Run) -> Release | PointRelease:
    """Run the method; points without a single trace would tell nothing, and are refused."""
    release: Release | PointRelease
    if isinstance(method, PointMethod) and isinstance(people, Traces):
        release = method.anonymize(people, seed=seed, run=run)
        if len(release) == 0:
            raise SettingsError(
                "nothing is left to publish: every trace is too short for the step; give a smaller --step"
            )
    elif isinstance(method, BoxMethod) and not isinstance(people, Traces):
        release = method.anonymize(people, run=run)
    else:
        raise _mismatch(method)
    return release


def _mismatch(method: Method) -> SettingsError:
    return SettingsError(f"{method.name} can't be run on what was read for it")


def _verified(
    inputs: Sequence[str | Path],
    written: Path,
    audit: pa.Table | None,
    release: Release | PointRelease,
    k: int | None,
    options: ReadOptions,
    run: Run,
) -> Verdict:
    """Return the verdict on the written file; raises NotVerified unless it holds."""
    verdict = verify(inputs, written, k=k, audit=audit, options=options, run=run.within(_left(run.memory, release)))
    _require_ok(verdict)
    return verdict


def _left(memory: int | None, release: Release | PointRelease) -> int | None:
    """Return what a limit of memory leaves to the check, beside the release and the samples."""
    if memory is None:
        return None
    return max(memory // 4, memory - release.nbytes - _SAMPLE_BYTES * release.samples)


def _require_ok(verdict: Verdict) -> None:
    if not verdict.ok:
        raise NotVerified(
            f"the release did not verify ({', '.join(verdict.failures)}); nothing was published. "
            "This is a fault of shoal: please report it"
        )
    raise_if_asked()


def _method(name: str, parameters: dict[str, Any]) -> Method:
    if name not in METHODS:
        raise SettingsError(f"no such method; choose one of: {', '.join(sorted(METHODS))}")
    chosen = METHODS[name]
    unknown = sorted(set(parameters) - set(chosen.model_fields))
    if unknown:
        known = ", ".join(chosen.model_fields)
        raise SettingsError(f"the method {name} has no setting {', '.join(unknown)}; it has: {known}")
    return chosen(**parameters)


def _refuse_settings(outputs: Outputs, chosen: Method, options: ReadOptions, *, seed: int | None, resume: bool) -> None:
    """Refuse, before any work, settings that do not go together."""
    _refuse_form(outputs, chosen, "unknown yet")
    if chosen.takes != "fixes":
        options.require_whole_users()
    if seed is not None and seed < 0:
        raise SettingsError("a seed is a whole number from 0 on")
    if resume and not chosen.resumable:
        raise SettingsError(f"{chosen.name} can't be resumed; leave out --resume")
    if outputs.allow_overlap and outputs.ledger is None:
        raise SettingsError("--allow-overlap goes with --ledger: without a ledger nobody looks for overlap")


def _refuse_outputs(inputs: Sequence[str | Path], outputs: Outputs) -> None:
    """Refuse, before any work, outputs that are there or that are inputs; a ledger may be there."""
    private = [path for path in (outputs.audit, outputs.run_record) if path is not None]
    targets = [outputs.path, manifest_path(outputs.path), *private]
    written = [*targets, outputs.ledger] if outputs.ledger else targets
    if len({path.absolute() for path in written}) < len(written) or _same_file(outputs.ledger, targets):
        raise OutputError(
            "the release, its manifest, the audit file, the run record and the ledger need different names"
        )
    files = expand(inputs)
    for target in written:
        if any(target.exists() and target.samefile(file) for file in files):
            raise OutputError(f"{target.name} is an input; an input is never overwritten")
        folders = [Path(path).resolve() for path in inputs if Path(path).is_dir()]
        if any(folder in target.resolve().parents for folder in folders):
            raise OutputError(f"{target.name} lies in a folder that is read; put it elsewhere")
    refuse_existing(targets, overwrite=outputs.overwrite)


def _same_file(ledger: Path | None, targets: Sequence[Path]) -> bool:
    """Whether the ledger is one of the targets under another name."""
    return ledger is not None and any(ledger.resolve() == path.resolve() for path in targets)


def _refuse_form(outputs: Outputs, method: Method, crs: str | None) -> None:
    points = method.takes == "fixes"
    refuse_form(outputs.path, outputs.audit, method.claim, crs, geo=outputs.geo, compact=outputs.compact, points=points)


def _affordable(method: Method, people: Trajectories | Traces, run: Run) -> Estimate:
    """Estimate the work; refuse it if it won't fit into memory."""
    if isinstance(method, PointMethod) and isinstance(people, Traces):
        estimate = method.estimate(people, run=run)
        larger = "a larger --step, " if "step_m" in type(method).model_fields else ""
        advice = f"use {larger}a shorter --period or a smaller --bbox"
    elif isinstance(method, BoxMethod) and not isinstance(people, Traces):
        method.require_enough(people)
        estimate = method.estimate(people, run=run)
        fewer = "fewer --candidates, " if "candidates" in type(method).model_fields else ""
        advice = f"use {fewer}a shorter --period or a smaller --bbox"
    else:
        raise _mismatch(method)
    require_memory(estimate.memory_bytes, method.name, advice, limit=run.memory)
    return estimate


@contextmanager
def _finished_parts(
    method: Method, people: Trajectories | Traces, outputs: Outputs, run: Run, *, resume: bool
) -> Iterator[Run]:
    """Return the run with a store of finished parts, if it should resume; they are kept until all is published."""
    if not resume or isinstance(people, Traces):
        drop_kept(run.scratch, outputs.path.name)
        yield run
        return
    with kept_folder(run.scratch, outputs.path.name, _fingerprint(method, people)) as folder:
        yield replace(run, store=Folder(folder))


def _fingerprint(method: Method, people: Trajectories) -> str:
    """Return what finished parts depend on: the code, the method's settings and everybody's samples."""
    digest = hashlib.sha256(f"{method.name} {method!r}".encode())
    for source in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(source.read_bytes())
    for column in (people.offsets, people.t, people.x, people.y):
        digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()[:32]


def _refuse_losses(release: Release, advice: str) -> None:
    """Refuse settings that leave out so much that the release would not verify."""
    everything = release.samples + release.suppressed
    if release.suppressed > MAX_SUPPRESSED * everything:
        raise SettingsError(
            f"{release.suppressed / everything:.0%} of the samples would be left out, more than {MAX_SUPPRESSED:.0%}; "
            f"{advice}"
        )


def _record(method: Method, options: ReadOptions, account: Account, seconds: float) -> dict[str, Any]:
    """Return what the private run record holds besides counts and seed: how to run it again, and the time it took."""
    import shoal

    return {
        "version": shoal.__version__,
        "method": method.name,
        "parameters": method.model_dump(),
        "read": options.model_dump(mode="json"),
        "cleaning": account.to_dict(),
        "seconds": round(seconds, 3),
    }
