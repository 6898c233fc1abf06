"""What all benchmarks share: best-of timing side by side, peak memory in a process of its own, a table, JSON."""

from __future__ import annotations

import json
import platform
import resource
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"


class Clock:
    """A Progress that keeps how long each stage took."""

    def __init__(self):
        self.seconds = {}

    @contextmanager
    def stage(self, name, total=None):  # noqa: ARG002
        begun = time.perf_counter()
        yield lambda _: None
        self.seconds[name] = self.seconds.get(name, 0) + time.perf_counter() - begun

    def seconds_of(self, names):
        """Return how long some stages took together."""
        return sum(self.seconds.get(name, 0.0) for name in names)


def growth_exponent(points):
    """Return the exponent with which seconds grow from the first to the last of (users, seconds)."""
    (u0, s0), (u1, s1) = points[0], points[-1]
    return float(np.log(s1 / s0) / np.log(u1 / u0))


def best_of(runs, repeats=3):
    """Time callables (by name) in turns, so that noise meets all of them; give the best seconds of each."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def measured(*arguments):
    """Run `python *arguments`, a script that ends in `report_run`; give its dict with `peak_gb` added."""
    done = subprocess.run([sys.executable, *map(str, arguments)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def report_run(seconds, **facts):
    """Print what a run took as one line of JSON: the other end of `measured`."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_gb": peak / 1e9, **facts}))


def report(name, rows, facts=None):
    """Print rows (dicts with equal keys) as a table and write them, with facts, to results/NAME.json."""
    facts = dict(facts or {})
    columns = list(rows[0])
    width = {c: max(len(c), *(len(str(row[c])) for row in rows)) for c in columns}
    print(f"\n{name}")
    print("  ".join(c.ljust(width[c]) for c in columns))
    print("  ".join("-" * width[c] for c in columns))
    for row in rows:
        print("  ".join(str(row[c]).ljust(width[c]) for c in columns))
    for key, value in facts.items():
        print(f"{key}: {value:,.3f}" if isinstance(value, float) else f"{key}: {value}")
    RESULTS.mkdir(exist_ok=True)
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    text = json.dumps({"bench": name, "rows": rows, "facts": facts, "with": machine}, indent=2)
    (RESULTS / f"{name}.json").write_text(text + "\n")


def some_users(source, target, users, *, rows=1):
    """Copy the rows of so many users, of those who have at least `rows`, drawn by a hash of their labels."""
    import duckdb

    drawn = f"GROUP BY uid HAVING count(*) >= {rows} ORDER BY md5(uid::VARCHAR) LIMIT {users}"
    copied = f"SELECT * FROM '{source}' WHERE uid IN (SELECT uid FROM '{source}' {drawn})"
    duckdb.connect().execute(f"COPY ({copied}) TO '{target}' (FORMAT parquet)")
