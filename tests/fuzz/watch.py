"""Run many cases: each process is watched from outside, so that a crash or a hang is a finding like any other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

from tests.fuzz.case import OVER, SECONDS

BLOCK = 4_000  # cases of a process
_WALL = 15 * SECONDS  # seconds without processor time until a case counts as hanging
_POLL = 0.25
_IN_MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Tally:
    """How the cases of a kind ended."""

    cases: int = 0
    seconds: float = 0.0
    ends: Counter[str] = field(default_factory=Counter)
    broken: dict[str, list[int]] = field(default_factory=dict)
    slowest: float = 0.0

    def add(self, line: dict[str, Any]) -> None:
        """Add what a process said of some cases."""
        self.cases += line["cases"]
        self.seconds += line["seconds"]
        self.slowest = max(self.slowest, line.get("slowest", 0.0))
        self.ends.update(line["ends"])
        for why, numbers in line["broken"].items():
            self.broken.setdefault(why, []).extend(numbers)

    def of(self, what: str) -> int:
        """Return how many cases broke in one way: memory, time, told, left, wrong, died, or anything else."""
        return sum(len(numbers) for why, numbers in self.broken.items() if why.partition(":")[0] == what)


def run_many(kinds: list[str], start: int, cases: int, jobs: int) -> dict[str, Tally]:
    """Run some numbers of each kind in `jobs` processes at a time; prints how far it is, and what is broken."""
    tallies = {kind: Tally() for kind in kinds}
    lock, began, all_of_them = Lock(), time.monotonic(), cases * len(kinds)

    def block(kind: str, first: int, stop: int) -> None:
        for line in _watched(kind, first, stop):
            with lock:
                known = set(tallies[kind].broken)
                tallies[kind].add(line)
                for why in line["broken"].keys() - known:
                    print(f"\n{kind} {line['broken'][why][0]}: {why}", flush=True)
        with lock:
            done = sum(tally.cases for tally in tallies.values())
            print(
                f"\r{done:,} of {all_of_them:,} cases in {time.monotonic() - began:,.0f} s ({kind})", end="", flush=True
            )

    blocks = [
        (kind, first, min(first + BLOCK, start + cases))
        for first in range(start, start + cases, BLOCK)
        for kind in kinds
    ]
    with ThreadPoolExecutor(jobs) as pool:
        for one in [pool.submit(block, *part) for part in blocks]:
            one.result()
    print(flush=True)
    return tallies


def _watched(kind: str, first: int, stop: int) -> Any:
    """Run cases in processes of their own, one after the other; yield what they say, and what became of them."""
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY) as folder:
        now, said = Path(folder, "now"), Path(folder, "said")
        while first < stop:
            now.write_text(f"{first} 0")
            said.write_text("")
            with said.open("w") as out, Path(folder, "noise").open("w+") as noise:
                child = subprocess.Popen(
                    [sys.executable, "-m", "tests.fuzz.work", kind, str(first), str(stop), str(now)],
                    stdout=out,
                    stderr=noise,
                    cwd=Path(__file__).parents[2],
                    preexec_fn=os.setsid,  # noqa: PLW1509  no thread of this process holds a lock that a child needs
                    env={**os.environ, "TMPDIR": folder},
                )
                why = _wait(child, now)
            yield from map(json.loads, said.read_text().splitlines())
            if why is None:
                return
            number = int(now.read_text().split()[0])
            yield {"cases": 1, "seconds": 0.0, "ends": {}, "broken": {why: [number]}}
            first = number + 1


def _wait(child: subprocess.Popen[bytes], now: Path) -> str | None:
    """Wait for a process; end it if a case takes too long or too much. Returns what is wrong, None if nothing is."""
    case, since, spent = "", 0.0, 0.0
    try:
        while (code := child.poll()) is None:
            time.sleep(_POLL)
            if now.read_text() != case:
                case, since, spent = now.read_text(), time.monotonic(), _processor(child.pid)
            if _processor(child.pid) - spent > SECONDS * 1.5 or time.monotonic() - since > _WALL:
                return "time: it did not end"
            if _resident(child.pid) > 3 * OVER:
                return "memory: it went on taking more"
        return None if code == 0 else f"died: {signal.Signals(-code).name if code < 0 else code}"
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _processor(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICK


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
