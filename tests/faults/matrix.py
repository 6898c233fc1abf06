"""Every call of the system that `shoal anonymize` makes in its folders, times everything that may happen there.

`python tests/faults/matrix.py` runs all cases and writes the counts into docs/reliability.md. It takes some minutes.
"""

import os
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from random import Random

sys.path.insert(0, str(Path(__file__).parents[2]))  # as a command
from tests.injected import ACTIONS, KINDS, MODES, Injector, compiled
from tests.pages import put

SHORT = {mode: mode.replace("private files", "private") for mode in MODES}


def every_case(calls):
    """All cases: (mode, action, number of the call, its kind)."""
    return [
        (mode, action, at, kind) for mode in MODES for action in ACTIONS for at, kind in enumerate(calls[mode], start=1)
    ]


def some_cases(calls, each=2):
    """Return a few cases for each kind of call in each mode, the same ones each time."""
    draw, chosen = Random(1), []
    for mode in MODES:
        for kind in dict.fromkeys(calls[mode]):
            places = [at for at, one in enumerate(calls[mode], start=1) if one == kind]
            chosen += [(mode, draw.choice(list(ACTIONS)), draw.choice(places), kind) for _ in range(each)]
    return chosen


def all_judged(injectors, cases):
    """Judge cases with several helpers at once; yield each case with what came of it."""
    free = SimpleQueue()
    for one in injectors:
        free.put(one)

    def judged(number):
        injector = free.get()
        try:
            return injector.case(*cases[number][:3], reader=bool(number % 2))
        finally:
            free.put(injector)

    with ThreadPoolExecutor(len(injectors)) as threads:
        yield from zip(cases, threads.map(judged, range(len(cases))), strict=True)


def _row(cells):
    return "| " + " | ".join(str(cell) if isinstance(cell, str) else f"{cell:,}" for cell in cells) + " |"


def table(head, rows):
    """Return the lines of a table."""
    return [_row(head), "|---" + "|--:" * (len(head) - 1) + "|", *map(_row, rows)]


def report(calls, results):
    """Return the tables of docs/reliability.md."""
    by_action, by_kind, wrong = {action: Counter() for action in ACTIONS}, Counter(), Counter()
    for (_, action, _, kind), told in results:
        ended = "half" if told["raw"] == "half" or told["raw"] != told["after"] else told["after"]
        by_action[action].update(["cases", ended, *(["wrong"] if told["wrong"] else [])])
        by_kind[kind] += 1
        wrong[kind] += bool(told["wrong"])
    names = ["cases", "old", "new", "half", "wrong"]
    total = sum(by_action.values(), Counter())
    head = [
        "what happens at the call",
        "cases",
        "nothing changed",
        "published",
        "finished by the next command",
        "wrong",
    ]
    rows = [[action, *(count[name] for name in names)] for action, count in by_action.items()]
    lines = table(head, [*rows, ["**all**", *(total[name] for name in names)]])
    head = ["call", *(SHORT[mode] for mode in MODES), "cases", "wrong"]
    rows = [[kind, *(calls[mode].count(kind) for mode in MODES), by_kind[kind], wrong[kind]] for kind in KINDS]
    rows = [row for row in rows if row[-2]]
    rows.append(["**all**", *(len(calls[mode]) for mode in MODES), total["cases"], total["wrong"]])
    return [*lines, "", *table(head, rows)]


def in_memory():
    """Return a folder in memory, where syncing takes no time, or None if there is none."""
    memory = Path("/dev/shm")
    return memory if os.access(memory, os.W_OK) else None


def main():
    library = compiled()
    if library is None:
        sys.exit("there is no C compiler (cc)")
    memory = Path("/dev/shm")
    where = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        folders = [Path(folder, str(n)) for n in range(os.cpu_count() or 1)]
        for one in folders:
            one.mkdir()
        injectors = [Injector(library, one) for one in folders]
        calls = {mode: injectors[0].calls(mode) for mode in MODES}
        results = []
        for case, told in all_judged(injectors, every_case(calls)):
            results.append((case, told))
            if told["wrong"]:
                print(*case, told, flush=True)
            if len(results) % 500 == 0:
                print(f"{len(results):,} cases", flush=True)
        for injector in injectors:
            injector.close()
    put("docs/reliability.md", "faults", report(calls, results))


if __name__ == "__main__":
    main()
