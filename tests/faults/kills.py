"""Runs of every method, killed at random moments: nothing is lost, and a run that ends leaves what it always leaves.

`python tests/faults/kills.py` kills 1,000 of them and writes the counts into docs/reliability.md.
"""

import os
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[2]))  # as a command
from tests.faults.matrix import in_memory, table
from tests.injected import SETTINGS, Injector, compiled
from tests.pages import put

KILLS = int(os.environ.get("KILLS", "1000"))


def killed(injector, method, kills, *, seed=1):
    """Kill so many runs of a method, and let others end; yield the question and the answer of each series."""
    draw, done = Random(f"{method} {seed}"), 0
    while done < kills:
        moments = [(draw.choice(["calls", "time"]), draw.random()) for _ in range(draw.randint(1, 5))]
        how = {"before": draw.random() < 0.5, "reader": draw.random() < 0.5}
        told = injector.kills(method, moments, **how)
        done += told["killed"]
        yield (moments, how), told


def row(series):
    """Count what series came to, as in the table of docs/reliability.md."""
    count = Counter()
    for _, told in series:
        count.update({name: told[name] for name in ("killed", "kept", "lost", "other")})
        count.update(told["states"])
        count["ended"] += 1
    return [count[name] for name in ("killed", "old", "new", "kept", "lost", "ended", "other")]


def counted(library, folder, method):
    """Kill the runs of a method; return its row of the table."""
    (folder / method).mkdir()
    injector = Injector(library, folder / method)
    series = list(killed(injector, method, KILLS // len(SETTINGS)))
    injector.close()
    found = [method, *row(series)]
    print(*found, [told for told in series if told[1]["wrong"]], flush=True)
    return found


def main():
    library = compiled()
    if library is None:
        sys.exit("there is no C compiler (cc)")
    head = ["method", "killed", "old", "new", "with finished parts", "lost", "ended", "other bytes"]
    with (
        tempfile.TemporaryDirectory(dir=in_memory()) as folder,
        ThreadPoolExecutor(2 * (os.cpu_count() or 1)) as at_once,
    ):
        rows = list(at_once.map(partial(counted, library, Path(folder)), SETTINGS))
    rows.append(["**all**", *(sum(column) for column in list(zip(*rows, strict=True))[1:])])
    put("docs/reliability.md", "kills", table(head, rows))


if __name__ == "__main__":
    main()
