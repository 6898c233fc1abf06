"""Run one case again, or many: see the package. `--docs` writes the table into docs/reliability.md."""

from __future__ import annotations

import argparse
import os
import sys
import time
import traceback
from pathlib import Path

from tests.fuzz.case import case_of, outcome, save
from tests.fuzz.kinds import KINDS
from tests.fuzz.report import table, write
from tests.fuzz.watch import run_many


def main() -> int:
    """Run what the arguments ask for; returns 1 if a case broke."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("kind", nargs="?", choices=KINDS)
    parser.add_argument("number", nargs="?", type=int)
    parser.add_argument("--save", type=Path, help="write the files of the case into this folder, e.g. as a seed")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--cases", type=int, default=1_000_000, help="spread over the kinds")
    parser.add_argument("--start", type=int, default=0, help="the first number of each kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--docs", action="store_true", help="write the table into docs/reliability.md")
    asked = parser.parse_args()
    if asked.kind is not None and asked.number is not None:
        return _one(asked.kind, asked.number, asked.save)
    kinds = [asked.kind] if asked.kind else asked.kinds.split(",")
    began = time.monotonic()
    tallies = run_many(kinds, asked.start, -(-asked.cases // len(kinds)), asked.jobs)
    print("\n".join(table(tallies)), f"\n{time.monotonic() - began:,.0f} s")
    for kind, tally in tallies.items():
        for why, numbers in sorted(tally.broken.items()):
            print(f"{kind}: {why}: {len(numbers)} cases, e.g. python -m tests.fuzz {kind} {numbers[0]}")
    if asked.docs:
        write(tallies)
    return int(any(tally.broken for tally in tallies.values()))


def _one(kind: str, number: int, to: Path | None) -> int:
    case = case_of(KINDS[kind], number)
    for name, data in case.files.items():
        print(f"{name}: {len(data):,} bytes, {data[:200]!r}")
    print(f"options: {case.options}")
    if to is not None:
        save(case, to)
    try:
        print(outcome(KINDS[kind], case))
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
