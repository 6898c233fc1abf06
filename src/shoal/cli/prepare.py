"""`shoal prepare`: compile everything once, at installation, so that the first use starts at once."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from shoal.cli.console import show, show_json, working
from shoal.cli.options import Running
from shoal.errors import ShoalError

if TYPE_CHECKING:
    from shoal.methods import Method
    from shoal.run import Run

__all__ = ["prepare"]

_USERS, _DAYS = 60, 4  # enough for every method; kernels are compiled for kinds of values, not for sizes


def prepare(
    *,
    all_methods: Annotated[
        bool, Parameter(name="--all", help="Prepare every method; by default only the default method.")
    ] = False,
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Compile what the commands need, by running them on a few generated people."""
    from shoal.jit import kernels_folder, watch_compiling
    from shoal.methods import DEFAULT, METHODS

    changes: list[int] = []
    chosen = [METHODS[DEFAULT], *(one for name, one in METHODS.items() if all_methods and name != DEFAULT)]
    with (
        working(running) as run,
        watch_compiling(changes.append),
        tempfile.TemporaryDirectory(prefix="shoal-prepare-", dir=running.work_dir) as folder,
    ):
        for method in chosen:
            _try(method, Path(folder), run)
    compiled = changes.count(-1)
    if running.json:
        show_json({"ok": True, "compiled": compiled, "methods": [one.name for one in chosen]})
    elif kernels_folder() is None:
        show(f"{compiled} kernels were compiled and not kept: no folder for them is safe. Set NUMBA_CACHE_DIR")
    elif compiled:
        show(f"{compiled} kernels are compiled. They are in {kernels_folder()}")
    else:
        show(f"Nothing was left to compile. The kernels are in {kernels_folder()}")
    return 0


def _try(method: type[Method], folder: Path, run: Run) -> None:
    """Measure, anonymize, verify and attack generated people with a method; what it finds does not matter."""
    from shoal.attacks import attack
    from shoal.measure import k_gap, unicity
    from shoal.pipeline import publish
    from shoal.reading import ReadOptions, read
    from shoal.synth import synthesize
    from shoal.verifier import verify

    kind: Literal["gps", "cdr"] = "gps" if method.takes == "fixes" else "cdr"
    events, release, audit = (folder / f"{method.name}-{name}.parquet" for name in ("events", "release", "audit"))
    synthesize(events, users=_USERS, kind=kind, scene="town", days=_DAYS, seed=1, run=run)
    options = ReadOptions()
    with suppress(ShoalError):
        people = read(events, options=options, run=run)
        unicity(people, points=4, run=run)
        k_gap(people, 2, run=run)
    with suppress(ShoalError):
        publish(events, release, method.example(), audit=audit, options=options, run=run)
        verify(events, release, options=options, run=run)
        attack(events, release, run=run)
