"""Threads: run a kernel over ranges of work, or a function over parts.

Kernels release the GIL. Ranges and parts never depend on the number of threads, so neither do results.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from itertools import repeat
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from shoal.errors import TooLarge
from shoal.interrupt import undisturbed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from shoal.store import Arrays

__all__ = ["LOCAL_ENGINE", "Engine", "ahead", "cores", "in_order", "run_ranges", "thread_count"]

S = TypeVar("S")
T = TypeVar("T")
_HEED = 0.2  # seconds after which a signal is heeded that could not wake the main thread


def thread_count(threads: int | None) -> int:
    """Return the number of threads to use: as asked, or all cores this process may use."""
    return cores() if threads is None else max(1, threads)


def cores() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Call(NamedTuple, Generic[T]):
    """A call to make, with its number."""

    number: int
    function: Callable[..., T]
    arguments: tuple[Any, ...]


class _Ended(NamedTuple, Generic[T]):
    """A call that has ended, with its result or its error."""

    number: int
    outcome: T | None = None
    error: BaseException | None = None

    def result(self) -> T:
        """Return the result, or raise the error."""
        if self.error is not None:
            raise self.error
        return self.outcome  # type: ignore[return-value]


class _Workers(Generic[T]):
    """Threads that make calls.

    `concurrent.futures` is not used: when Ctrl-C comes while the main thread takes one of its locks, that lock may
    stay taken, and the program waits for its own threads for ever. A `SimpleQueue` can be interrupted at any moment.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads: list[Thread] = []
        self._gone: list[None] = []
        self._calls: SimpleQueue[_Call[T] | None] = SimpleQueue()
        self._ended: SimpleQueue[_Ended[T]] = SimpleQueue()

    def call(self, number: int, function: Callable[..., T], *arguments: Any) -> None:
        """Have a thread call the function."""
        self._calls.put(_Call(number, function, arguments))
        if len(self._threads) < self._most:
            with undisturbed():
                self._start()

    def _start(self) -> None:
        """Start a thread. If the system starts no more, those that there are do the work; raises TooLarge if none."""
        thread = Thread(target=self._work, daemon=True)
        try:
            thread.start()
        except RuntimeError:
            if not self._threads:
                raise TooLarge("the system starts no more threads; allow more (ulimit -u)") from None
            self._most = len(self._threads)
        else:
            self._threads.append(thread)

    def ended(self) -> list[_Ended[T]]:
        """Wait until at least one call has ended, and return all that have."""
        found = [self._next_ended()]
        with suppress(Empty):
            while True:
                found.append(self._ended.get_nowait())
        return found

    def _next_ended(self) -> _Ended[T]:
        """Wait for the next call to end.

        The wait ends from time to time, so that Python looks for signals: one that comes just before the wait, or to
        another thread, does not wake this thread.
        """
        while True:
            with suppress(Empty):
                return self._ended.get(timeout=_HEED)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            try:
                ended = _Ended(call.number, call.function(*call.arguments))
            except BaseException as error:
                ended = _Ended(call.number, error=error)
            self._ended.put(ended)
            del call, ended  # their memory belongs to the caller
        self._gone.append(None)
        self._ended.put(_Ended(-1))  # wakes who waits for this thread

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        """Drop the calls that have not begun, and wait for the others; Ctrl-C is raised only after that."""
        with suppress(Empty):
            while True:
                self._calls.get_nowait()
        for _thread in self._threads:
            self._calls.put(None)
        interrupted = None
        while len(self._gone) < len(self._threads):
            try:
                self._next_ended()
            except KeyboardInterrupt as error:
                interrupted = error
        with undisturbed():
            for thread in self._threads:
                thread.join()
        if interrupted is not None:
            raise interrupted


def ahead(items: Iterable[T]) -> Generator[T]:
    """Yield the same items; each is made on another thread while the caller works on the one before.

    A caller that may not come to the end closes it, so that a signal that came meanwhile is raised there.

    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    source = iter(items)
    with closing(in_order(lambda _: _next_of(source), repeat(None), threads=1, waiting=1)) as made:
        for found in made:
            if not found:
                return
            yield from found


def _next_of(source: Iterator[T]) -> list[T]:
    """Return the next item in a list, or an empty list at the end, since None may be an item."""
    for item in source:
        return [item]
    return []


def in_order(
    function: Callable[[S], T], items: Iterable[S], *, threads: int | None = None, waiting: int | None = None
) -> Generator[T]:
    """Yield `function(item)` for every item, in order; threads work `waiting` items ahead, or one each and one more.

    >>> list(in_order(abs, [-3, 2, -1], threads=2))
    [3, 2, 1]
    """
    workers = thread_count(threads)
    most = workers + 1 if waiting is None else waiting
    pool: _Workers[T] = _Workers(workers)
    results: dict[int, _Ended[T]] = {}
    begun = yielded = 0
    with pool:

        def following() -> T:
            while yielded not in results:
                results.update((ended.number, ended) for ended in pool.ended())
            return results.pop(yielded).result()

        for item in items:
            pool.call(begun, function, item)
            begun += 1
            if begun - yielded > most:
                yield following()
                yielded += 1
        while yielded < begun:
            yield following()
            yielded += 1


def run_ranges(
    work: Callable[[int, int], object],
    ranges: Iterable[tuple[int, int]],
    *,
    threads: int | None = None,
    advance: Callable[[float], None] = lambda _: None,
) -> None:
    """Call `work(start, stop)` for every range on several threads; `advance(stop - start)` after each.

    An error or Ctrl-C stops it as soon as the ranges under way are done: keep ranges short (well below a second).
    """
    workers = thread_count(threads)
    pool: _Workers[object] = _Workers(workers)
    under_way = 0
    with pool:

        def collect() -> int:
            ended = pool.ended()
            for one in ended:
                one.result()
                advance(one.number)
            return len(ended)

        for start, stop in ranges:
            pool.call(stop - start, work, start, stop)
            under_way += 1
            if under_way >= 2 * workers:
                under_way -= collect()
        while under_way:
            under_way -= collect()


class Engine(Protocol):
    """Runs a function on parts, in this process or elsewhere."""

    def map(
        self, function: Callable[[Any], Arrays], parts: Iterable[tuple[int, Any]], *, workers: int
    ) -> Iterator[tuple[int, Arrays]]:
        """Yield the number and the result of each part as it is finished; parts are taken as workers become free."""
        ...


class _Local:
    """The local engine: threads of this process, which share its memory."""

    def map(
        self, function: Callable[[Any], Arrays], parts: Iterable[tuple[int, Any]], *, workers: int
    ) -> Iterator[tuple[int, Arrays]]:
        pool: _Workers[Arrays] = _Workers(workers)
        under_way = 0
        with pool:

            def finished() -> Iterator[tuple[int, Arrays]]:
                """Yield the finished parts; if one failed, its error is raised after the others are yielded."""
                nonlocal under_way
                for ended in sorted(pool.ended(), key=lambda one: one.error is not None):
                    under_way -= 1
                    yield ended.number, ended.result()

            for number, part in parts:
                pool.call(number, function, part)
                del part  # its memory belongs to the worker
                under_way += 1
                if under_way >= workers:
                    yield from finished()
            while under_way:
                yield from finished()


LOCAL_ENGINE: Engine = _Local()
