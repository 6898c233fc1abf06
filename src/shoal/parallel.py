"""Threads: run a kernel over ranges of work. Kernels release the GIL; the ranges never depend on the threads."""

from __future__ import annotations

import os
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["ahead", "run_ranges", "thread_count"]

T = TypeVar("T")


def thread_count(threads: int | None) -> int:
    """Return the number of threads to use: as asked, or all cores this process may use."""
    if threads is not None:
        return max(1, threads)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def ahead(items: Iterable[T]) -> Iterator[T]:
    """Return the same items; each is made on another thread while the one before it is worked on.

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
    """Return the next item in a list, or an empty one: None may be an item."""
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
