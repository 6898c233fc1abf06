"""Threads: run a kernel over ranges of work, or a function over parts.

Kernels release the GIL. Ranges and parts never depend on the number of threads, so neither do results.
"""

from __future__ import annotations

import os
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from concurrent.futures import Future

    from shoal.store import Arrays

__all__ = ["LOCAL_ENGINE", "Engine", "ahead", "run_ranges", "thread_count"]

T = TypeVar("T")


def thread_count(threads: int | None) -> int:
    """Return the number of threads to use: as asked, or all cores this process may use."""
    if threads is not None:
        return max(1, threads)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ahead(items: Iterable[T]) -> Iterator[T]:
    """Yield the same items; each is made on another thread while the caller works on the one before.

    >>> list(ahead(n * n for n in range(4)))
    [0, 1, 4, 9]
    """
    source = iter(items)
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(_next_of, source)
        while found := following.result():
            following = pool.submit(_next_of, source)
            yield from found


def _next_of(source: Iterator[T]) -> list[T]:
    """Return the next item in a list, or an empty list at the end, since None may be an item."""
    for item in source:
        return [item]
    return []


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
    todo = iter(ranges)
    with ThreadPoolExecutor(thread_count(threads)) as pool:
        try:
            under_way = {}
            for start, stop in todo:
                under_way[pool.submit(work, start, stop)] = stop - start
                if len(under_way) >= 2 * thread_count(threads):
                    _collect(under_way, advance)
            while under_way:
                _collect(under_way, advance)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _collect(under_way: dict, advance: Callable[[float], None]) -> None:  # type: ignore[type-arg]
    done, _ = wait(under_way, return_when=FIRST_COMPLETED)
    for future in done:
        future.result()
        advance(under_way.pop(future))


class Engine(Protocol):
    """Runs a function on parts, in this process or elsewhere."""

    def map(
        self, function: Callable[[Any], Arrays], parts: Iterable[tuple[int, Any]], *, workers: int
    ) -> Iterator[tuple[int, Arrays]]:
        """Yield the number and the result of each part as it is finished; parts are taken as workers become free."""
        ...


class _Threads:
    """The local engine: threads of this process, which share its memory."""

    def map(
        self, function: Callable[[Any], Arrays], parts: Iterable[tuple[int, Any]], *, workers: int
    ) -> Iterator[tuple[int, Arrays]]:
        under_way: dict[Future[Arrays], int] = {}
        with ThreadPoolExecutor(workers) as pool:
            try:
                for number, part in parts:
                    under_way[pool.submit(function, part)] = number
                    del part  # its memory belongs to the worker
                    if len(under_way) >= workers:
                        yield from _finished(under_way)
                while under_way:
                    yield from _finished(under_way)
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise


def _finished(under_way: dict[Future[Arrays], int]) -> Iterator[tuple[int, Arrays]]:
    """Yield the finished parts, at least one; if a part failed, its error is raised after the others are yielded."""
    done, _ = wait(under_way, return_when=FIRST_COMPLETED)
    for future in sorted(done, key=lambda one: one.exception() is not None):
        yield under_way.pop(future), future.result()


LOCAL_ENGINE: Engine = _Threads()
