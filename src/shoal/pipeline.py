"""From files of events to a verified release: the recipe behind `shoal anonymize`."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.errors import NotVerified, OutputError, SettingsError
from shoal.interrupt import raise_if_asked
from shoal.io import read
from shoal.io.account import Account
from shoal.io.sources import expand
from shoal.io.write import manifest_path, refuse_existing, refuse_form, write_release
from shoal.memory import require_memory
from shoal.methods import METHODS
from shoal.progress import SILENT
from shoal.verifier import verify

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from shoal.io.options import ReadOptions
    from shoal.methods import Estimate, Method
    from shoal.progress import Progress
    from shoal.release import Release
    from shoal.trajectories import Trajectories
    from shoal.verifier import Verdict

__all__ = ["Outputs", "Published", "publish"]


_VERIFY_BYTES = 110  # what verifying takes for a sample, at its worst moment


@dataclass(frozen=True)
class Outputs:
    """Where and how a release is written; see `shoal.io.write.write_release`."""

    path: Path
    audit: Path | None = field(default=None, kw_only=True)
    run_record: Path | None = field(default=None, kw_only=True)
    overwrite: bool = field(default=False, kw_only=True)
    geo: bool = field(default=False, kw_only=True)
    compact: bool = field(default=False, kw_only=True)


@dataclass(frozen=True, kw_only=True)
class Published:
    """What a run did: the cleaning, the estimate and, unless it was a dry run, the release and its verdict."""

    account: Account
    estimate: Estimate
    release: Release | None = None
    verdict: Verdict | None = None
    seconds: float = 0.0

    def figures(self) -> dict[str, Any]:
        """Give the release in figures: size and precision."""
        if self.release is None:
            return {}
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
        """Give the figures as lines to print."""
        of = self.figures()
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
        """Give the form that `--json` prints."""
        return {
            "ok": True,
            "published": self.release is not None,
            "claim": self.release.claim.to_dict() if self.release else None,
            "figures": self.figures(),
            "account": self.account.to_dict(),
            "estimate": asdict(self.estimate),
            "verdict": self.verdict.to_dict() if self.verdict else None,
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
    threads: int | None = None,
    work_dir: Path | None = None,
    progress: Progress = SILENT,
) -> Published:
    """Read, anonymize, write, verify from the written file, publish.

    Guarantee: if it returns (and was no dry run), a whole release is at `outputs.path` whose claim was shown on
    the file by code that shares nothing with the method; if it raises, nothing is published.
    """
    try:
        return _publish(
            inputs,
            outputs,
            _method(method, parameters),
            options,
            seed=seed,
            dry_run=dry_run,
            threads=threads,
            work_dir=work_dir,
            progress=progress,
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; nothing was published") from None


def _publish(
    inputs: Sequence[str | Path],
    outputs: Outputs,
    chosen: Method,
    options: ReadOptions,
    *,
    seed: int | None,
    dry_run: bool,
    threads: int | None,
    work_dir: Path | None,
    progress: Progress,
) -> Published:
    started = time.perf_counter()
    _refuse_outputs([*inputs, *([options.cells] if options.cells else [])], outputs)
    _refuse_form(outputs, chosen, "unknown yet")
    if seed is not None and seed < 0:
        raise SettingsError("a seed is a whole number from 0 on")
    scratch = work_dir or outputs.path.parent
    people = read(inputs, options=options, threads=threads, work_dir=scratch, progress=progress)
    _refuse_form(outputs, chosen, people.frame.crs)
    account = people.account or Account(rows_read=people.samples, kept_rows=people.samples)
    estimate = _affordable(chosen, people, threads)
    raise_if_asked()
    if dry_run:
        return Published(account=account, estimate=estimate)
    release = chosen.anonymize(people, threads=threads, progress=progress)
    verdicts: list[Verdict] = []

    def check(written: Path, audit: pa.Table | None) -> None:
        verdict = verify(
            inputs,
            written,
            k=chosen.k,
            audit=audit,
            options=options,
            threads=threads,
            work_dir=scratch,
            progress=progress,
        )
        if not verdict.ok:
            raise NotVerified(
                f"the release did not verify ({', '.join(verdict.failures)}); nothing was published. "
                "This is a fault of shoal: please report it"
            )
        raise_if_asked()
        verdicts.append(verdict)

    published = write_release(
        release,
        outputs.path,
        audit=outputs.audit,
        run_record=outputs.run_record,
        record=_record(chosen, options, account),
        overwrite=outputs.overwrite,
        geo=outputs.geo,
        compact=outputs.compact,
        seed=seed,
        check=check,
    )
    seconds = time.perf_counter() - started
    return Published(account=account, estimate=estimate, release=published, verdict=verdicts[0], seconds=seconds)


def _method(name: str, parameters: dict[str, Any]) -> Method:
    if name not in METHODS:
        raise SettingsError(f"no such method; choose one of: {', '.join(sorted(METHODS))}")
    return METHODS[name](**parameters)


def _refuse_outputs(inputs: Sequence[str | Path], outputs: Outputs) -> None:
    """Refuse, before any work, outputs that are there or that are inputs."""
    private = [path for path in (outputs.audit, outputs.run_record) if path is not None]
    targets = [outputs.path, manifest_path(outputs.path), *private]
    if len({path.absolute() for path in targets}) < len(targets):
        raise OutputError("the release, its manifest, the audit file and the run record need different names")
    files = expand(inputs)
    for target in targets:
        if any(target.exists() and target.samefile(file) for file in files):
            raise OutputError(f"{target.name} is an input; an input is never overwritten")
        folders = [Path(path).resolve() for path in inputs if Path(path).is_dir()]
        if any(folder in target.resolve().parents for folder in folders):
            raise OutputError(f"{target.name} lies in a folder that is read; put it elsewhere")
    refuse_existing(targets, overwrite=outputs.overwrite)


def _refuse_form(outputs: Outputs, method: Method, crs: str | None) -> None:
    refuse_form(outputs.path, outputs.audit, method.claim, crs, geo=outputs.geo, compact=outputs.compact)


def _affordable(method: Method, people: Trajectories, threads: int | None) -> Estimate:
    """Estimate the work; refuse it if it won't fit into memory."""
    method.require_enough(people)
    estimate = method.estimate(people, threads=threads)
    needed = max(estimate.memory_bytes, _VERIFY_BYTES * people.samples)
    require_memory(needed, method.name, "use fewer --candidates, a shorter --period or a smaller --bbox")
    return estimate


def _record(method: Method, options: ReadOptions, account: Account) -> dict[str, Any]:
    """Give what the private run record holds besides counts and seed: enough to run it again."""
    import shoal

    return {
        "version": shoal.__version__,
        "method": method.name,
        "parameters": method.model_dump(),
        "read": options.model_dump(mode="json"),
        "cleaning": account.to_dict(),
    }
