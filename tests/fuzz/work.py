"""Run a range of cases in this process, saying how they ended: `python -m tests.fuzz.work KIND FIRST STOP NOW`."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections import Counter
from functools import partial
from pathlib import Path

from tests.fuzz.case import CANARIES, Broken, case_of, outcome
from tests.fuzz.kinds import KINDS
from tests.fuzz.shortcuts import shortcut

_LINE = 100  # cases


def why(error: BaseException) -> str:
    """Return in one line how a case broke: what cases of the same fault have in common."""
    if isinstance(error, Broken):
        return str(error).split(" in: ")[0][:120] if error.what == "told" else str(error)[:120]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/shoal/" in frame.filename]
    place = f"{Path(frames[-1].filename).name} {frames[-1].name}" if frames else "outside"
    return f"uncaught: {type(error).__name__} in {place}"


def _outcome(kind: str, number: int) -> str:
    return outcome(KINDS[kind], case_of(KINDS[kind], number))


def main(kind: str, first: int, stop: int, now: int) -> None:
    """Run the cases from `first` to before `stop`; the number of the one that runs is written to the file `now`."""
    ends: Counter[str] = Counter()
    broken: dict[str, list[int]] = {}
    began = slow = 0.0
    began = time.process_time()

    def say(cases: int) -> None:
        nonlocal began, slow
        seconds = time.process_time() - began
        line = {"cases": cases, "seconds": seconds, "ends": ends, "broken": broken, "slowest": slow}
        print(json.dumps(line), flush=True)
        ends.clear()
        broken.clear()
        began, slow = time.process_time(), 0.0

    said = first
    for number in range(first, stop):
        os.pwrite(now, f"{number} ".ljust(24).encode(), 0)
        started = time.process_time()
        try:
            ends[shortcut(number, partial(_outcome, kind, number))] += 1
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            broken.setdefault(why(error), []).append(number)
        slow = max(slow, time.process_time() - started)
        if number + 1 - said == _LINE or number + 1 == stop:
            say(number + 1 - said)
            said = number + 1
            noise = os.pread(2, 1 << 20, 0).decode(errors="replace") if os.fstat(2).st_size else ""
            if any(canary in noise for canary in CANARIES):
                broken.setdefault("told: on standard error", []).append(number)
                os.ftruncate(2, 0)


if __name__ == "__main__":
    handle = os.open(sys.argv[4], os.O_WRONLY)
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), handle)
