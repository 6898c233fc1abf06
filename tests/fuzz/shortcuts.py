"""What costs most of a case and is the same in each: the engine's catalogue, the arguments of each command, threads.

With `shortcuts` these are made once for many cases, and a case runs beside the main thread, where signals need not be
delayed. One case in a hundred runs without.
"""

from __future__ import annotations

from contextlib import contextmanager
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

import cyclopts
import duckdb

from shoal import parallel
from shoal.cli import limits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

# Settings that name the folder or the files of one case, or that can't be changed afterwards.
_OF_ONE_CASE = ("temp_directory", "extension_directory", "secret_directory", "allowed_paths")
_FOR_EVER = ("enable_external_access", "lock_configuration")
_SKIPPED = tuple(f"SET {name} " for name in (*_OF_ONE_CASE, *_FOR_EVER))

_connect = duckdb.connect
_assemble = cyclopts.App.assemble_argument_collection
_engine: list[Any] = []  # the one that is shared, if it is sound
_set: dict[str, str] = {}  # its settings by name: the query that made each
_arguments: dict[Any, cyclopts.ArgumentCollection] = {}


def shortcut(number: int, function: Callable[[], T]) -> T:
    """Return `function()`, called with the shortcuts if the case of this number has them."""
    if number % 100 == 99:
        return function()
    ended: list[T | BaseException] = []

    def call() -> None:
        try:
            with _shortcuts():
                ended.append(function())
        except BaseException as error:
            ended.append(error)

    beside = _Reused(call)
    beside.start()
    beside.join()
    if isinstance(ended[0], BaseException):
        raise ended[0]
    return ended[0]


@contextmanager
def _shortcuts() -> Iterator[None]:
    duckdb.connect, cyclopts.App.assemble_argument_collection = _Connection, _assembled  # type: ignore[misc,assignment]
    parallel.Thread = limits.Thread = _Reused  # type: ignore[misc,assignment]
    try:
        yield
    finally:
        duckdb.connect, cyclopts.App.assemble_argument_collection = _connect, _assemble  # type: ignore[misc]
        parallel.Thread = limits.Thread = Thread  # type: ignore[misc]


class _Reused:
    """A thread that is not ended with its target: it waits for the next one."""

    _idle: SimpleQueue[SimpleQueue[_Reused]] = SimpleQueue()

    def __init__(self, target: Callable[[], object], *, daemon: bool = True) -> None:
        self.target, self.daemon, self._running = target, daemon, Lock()

    def start(self) -> None:
        self._running.acquire()
        if self._idle.empty():
            asked: SimpleQueue[_Reused] = SimpleQueue()
            Thread(target=self._serve, args=(asked,), daemon=True).start()
        else:
            asked = self._idle.get()
        asked.put(self)

    def join(self) -> None:
        with self._running:
            pass

    @classmethod
    def _serve(cls, asked: SimpleQueue[_Reused]) -> None:
        while True:
            one = asked.get()
            one.target()
            cls._idle.put(asked)
            one._running.release()
            del one  # what its target held belongs to the case


class _Connection:
    """A connection to the shared engine, with temporary tables of its own."""

    def __init__(self, _: str) -> None:
        if not _engine:
            _engine.append(_connect(":memory:"))
            _set.clear()
        self._own = _engine[0].cursor()

    def __enter__(self) -> _Connection:
        return self

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        self._own.close()
        if isinstance(error, duckdb.Error) and not isinstance(error, duckdb.DataError | duckdb.ProgrammingError):
            _engine.clear()  # after some errors an engine takes no more queries

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def execute(self, query: str, *parameters: Any) -> Any:
        if query.startswith(_SKIPPED):
            return None
        if not query.startswith("SET "):
            return self._own.execute(query, *parameters)
        name = query.split()[1]
        if _set.get(name) != query:
            self._own.execute(query)
            _set[name] = query
        return None


def _assembled(app: cyclopts.App, **given: Any) -> cyclopts.ArgumentCollection:
    key = (id(app), *sorted(given.items()))
    if key not in _arguments:
        _arguments[key] = _assemble(app, **given)
    kept = _arguments[key]
    fresh = kept.copy(reset_tokens=True)
    new = {id(old): one for old, one in zip(kept, fresh, strict=True)}
    for one in fresh:  # the copy's own parts are those of the original, which never get a value
        one.children = cyclopts.ArgumentCollection(new[id(child)] for child in one.children)
    return fresh
