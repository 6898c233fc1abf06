"""Conformance: checks of what every method must do, for authors of new methods.

>>> import shoal
>>> from shoal.testing import check_method
>>> check_method(shoal.Uniform(to_cell="1km"))[:2]
['declarations', 'claim']
"""

from __future__ import annotations

import hashlib
import json
import tempfile
import tracemalloc
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from shoal.errors import InputError, NotVerified, SettingsError, ShoalError, TooFewUsers, TooLarge
from shoal.pipeline import publish
from shoal.reading import ReadOptions
from shoal.run import LOCAL, Run
from shoal.synth import synthesize

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from shoal.methods import Method
    from shoal.release import Release
    from shoal.traces import Traces
    from shoal.trajectories import Trajectories

__all__ = ["CHECKS", "Nonconforming", "check_method"]

_ONE = ReadOptions(confirm=("one-sample",))
_SEED = 7
# How far the memory of a run may be above its estimate: a factor, and what does not grow with people.
_FACTOR, _SLACK_BYTES = 4, 1 << 22


class Nonconforming(AssertionError):
    """A method does not do what every method must do; the message says which check failed, and how."""


def check_method(method: Method, *, users: int = 60, days: int = 2) -> list[str]:
    """Check that a method does what the rest of the program relies on; return the names of the checks.

    Input: a method with its settings, and the size of the generated town to try it on. The checks are those of
    `CHECKS`: its declarations are complete; what it claims is shown on the written file; results do not depend on
    threads, repetition, labels or the order of rows; odd people (all alike, one sample each, just k) are published or
    refused with a typed error; fewer than k are refused; Ctrl-C publishes nothing; the estimate of memory is not far
    below what NumPy takes, and less memory is refused before the work. Raises Nonconforming at the first check that
    fails. Cost: some fifteen runs of the method on these people.
    """
    table = _town(method, users, days)
    for name, check in CHECKS.items():
        try:
            check(method, table)
        except Nonconforming as error:
            raise Nonconforming(f"{method.name}, {name}: {error}") from error
    return list(CHECKS)


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise Nonconforming(otherwise)


def _town(method: Method, users: int, days: int) -> pa.Table:
    """Return generated people; fewer of them with GPS fixes, which are many for each person."""
    if method.takes == "fixes":
        return synthesize(users=max(6, users // 10), kind="gps", scene="town", days=days, seed=1)
    return synthesize(users=users, scene="town", days=days, seed=1)


def _made(method: Method, table: pa.Table, run: Run = LOCAL) -> Release:
    return method.anonymize(method.read(table), seed=_SEED, run=run)


def _records(release: Release) -> list[str]:
    """Return a digest of every record, sorted: the release as a multiset."""
    columns = release.layout.columns(release.frame, np.arange(len(release.layout))).values()
    plain = [column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column for column in columns]
    arrays = [column.to_numpy(zero_copy_only=False) for column in plain]
    edges = zip(release.offsets[:-1].tolist(), release.offsets[1:].tolist(), strict=True)
    return sorted(hashlib.sha256(b"".join(a[i:j].tobytes() for a in arrays)).hexdigest() for i, j in edges)


@contextmanager
def _folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="shoal-check-") as folder:
        yield Path(folder)


def _publish(method: Method, table: pa.Table, folder: Path, run: Run = LOCAL) -> Any:
    events = folder / "events.parquet"
    pq.write_table(table, events)
    (folder / "out").mkdir()
    out = folder / "out"
    return publish(events, out / "release.parquet", method, audit=out / "audit.parquet", run=run, confirm="one-sample")


def _declarations(method: Method, table: pa.Table) -> None:  # noqa: ARG001
    """Check that a method's class declares everything that the program derives from it."""
    _require(all(getattr(type(method), name, "") for name in ("name", "about", "citation")), "name, about or citation")
    for name, about in method.settings().items():
        _require(about.help, f"the setting {name} has no help")
    _require(type(method)(**method.model_dump()) == method, "it can't be made again of its settings")
    try:
        json.dumps(method.parameters)
    except TypeError:
        raise Nonconforming("its public parameters can't be written as JSON") from None
    _require(method.example().name == method.name, "its example can't be made")
    for word, settings in method.variants.items():
        _require(set(settings) <= set(type(method).model_fields), f"the variant {word} has settings it does not know")


def _claim(method: Method, table: pa.Table) -> None:
    """Check that the verifier confirms the claim on the written file."""
    with _folder() as folder:
        try:
            done = _publish(method, table, folder)
        except NotVerified as error:
            raise Nonconforming(str(error)) from error
        _require(
            done.verdict.shown is not None and done.verdict.shown.implies(done.release.claim),
            f"it claims {done.release.claim}, but verify has shown {done.verdict.shown}",
        )
        _require(done.release.method == method.name, "the release names another method")
        _require(isinstance(done.release.layout, method.layout), "the release has another layout than declared")


def _deterministic(method: Method, table: pa.Table) -> None:
    """Check that results are the same for any number of threads, and when run again."""
    one, two, again = (_records(_made(method, table, Run(threads=n))) for n in (1, 2, 2))
    _require(one == two == again, "records depend on threads, or on chance beside the seed")


def _labels_and_order(method: Method, table: pa.Table) -> None:
    """Check that results do not depend on people's labels or on the order of rows."""
    chance = np.random.default_rng(_SEED)
    uid = table["uid"].combine_chunks()
    known, place = np.unique(uid.to_numpy(), return_inverse=True)
    names = pa.array([f"p{n}" for n in chance.permutation(len(known))])
    renamed = table.set_column(0, "uid", names.take(pa.array(place)))
    shuffled = renamed.take(pa.array(chance.permutation(len(renamed))))
    _require(_records(_made(method, table)) == _records(_made(method, shuffled)), "records depend on labels or order")


def _one_sample_each(table: pa.Table) -> pa.Table:
    return table.take(pa.array(np.unique(table["uid"].to_numpy(), return_index=True)[1]))


def _odd_people(method: Method, table: pa.Table) -> None:
    """Check that odd people (all alike, one sample each, just k) are published, or refused with a typed error."""
    k = method.among or 2
    first = table.filter(pa.compute.equal(table["uid"], table["uid"][0]))
    alike = pa.concat_tables(
        first.set_column(0, "uid", pa.array(np.full(len(first), n, np.int64))) for n in range(k + 1)
    )
    few = table.filter(pa.compute.is_in(table["uid"], pa.array(np.unique(table["uid"].to_numpy())[:k])))
    for what, people in (("all alike", alike), ("one sample each", _one_sample_each(table)), (f"only {k}", few)):
        with _folder() as folder:
            try:
                _publish(method, people, folder)
            except (SettingsError, InputError):
                _require(not list((folder / "out").iterdir()), f"people who are {what} are refused, but files are left")
            except ShoalError as error:
                raise Nonconforming(f"people who are {what}: {type(error).__name__}") from error


def _too_few(method: Method, table: pa.Table) -> None:
    """Check that fewer than k people are refused."""
    if method.among is None:
        return
    few = table.filter(pa.compute.is_in(table["uid"], pa.array(np.unique(table["uid"].to_numpy())[: method.among - 1])))
    try:
        _made(method, few)
    except TooFewUsers:
        return
    raise Nonconforming("fewer than k people are not refused with TooFewUsers")


class _Stops:
    """Progress that raises KeyboardInterrupt when it first advances, or at the end of its first stage."""

    @contextmanager
    def stage(self, name: str, total: float | None = None) -> Iterator[Callable[[float], None]]:  # noqa: ARG002
        yield self._stop
        self._stop(0)

    @staticmethod
    def _stop(_: float) -> None:
        raise KeyboardInterrupt


def _interrupt(method: Method, table: pa.Table) -> None:
    """Check that Ctrl-C in the middle of the work publishes nothing and leaves nothing."""
    people = method.read(table)
    try:
        method.anonymize(people, seed=_SEED, run=Run(progress=_Stops()))
    except KeyboardInterrupt:
        pass
    else:
        raise Nonconforming("it has no stage of progress, so that nobody sees it work, or it swallows Ctrl-C")
    with _folder() as folder:
        try:
            _publish(method, table, folder, Run(progress=_Stops()))
        except KeyboardInterrupt:
            _require(not list((folder / "out").iterdir()), "Ctrl-C leaves files")
        else:
            raise Nonconforming("Ctrl-C is swallowed")


def _memory(method: Method, table: pa.Table) -> None:
    """Check the estimate of memory: it is not far below what is taken, and less than it is refused before the work."""
    people = method.read(table)
    estimate, taken = method.estimate(people).memory_bytes, _taken(method, people)
    _require(estimate > 0, "its estimate of memory is not above zero")
    _require(taken <= _FACTOR * estimate + _SLACK_BYTES, f"it takes {taken} bytes of memory, but estimates {estimate}")
    few = _one_sample_each(table)  # little to read, so that the method needs more than the reader
    try:
        method.require(method.read(few, options=_ONE))
    except (SettingsError, InputError):
        few = table
    limit = Run(memory=max(1, method.estimate(method.read(few, options=_ONE)).memory_bytes - 1))
    with _folder() as folder:
        try:
            _publish(method, few, folder, limit)
        except TooLarge as error:
            _require(str(error).startswith(method.name), f"with less memory than estimated, {error}")
            _require(not list((folder / "out").iterdir()), "a refusal leaves files")
        else:
            raise Nonconforming("less memory than it estimates is not refused")


def _taken(method: Method, people: Trajectories | Traces) -> int:
    """Return the most memory that Python and NumPy hold during a run, besides what they held before.

    Arrays that are made inside compiled code are not seen. A run before it compiles the kernels.
    """
    method.anonymize(people, seed=_SEED)
    tracemalloc.start()
    try:
        method.anonymize(people, seed=_SEED)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


CHECKS: dict[str, Callable[[Method, pa.Table], None]] = {
    "declarations": _declarations,
    "claim": _claim,
    "deterministic": _deterministic,
    "labels and order": _labels_and_order,
    "odd people": _odd_people,
    "too few": _too_few,
    "interrupt": _interrupt,
    "memory": _memory,
}
