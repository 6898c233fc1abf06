"""The population generator: time and memory at a million users, and its statistics.

python bench/bench_synth.py                   1 M users x 144 samples: seconds, peak memory
python bench/bench_synth.py --statistics      the table of docs/synth.md: as many users and samples as `civ` and `sen`
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numba
import numpy as np

from shoal.run import Run

POINTS = (1, 2, 3, 4, 5)
# Users and samples per hour of Tab. I of kte-hide, times 14 days.
SIZES = {"civ": (82_728, 0.75 * 336), "sen": (286_926, 0.45 * 336)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--statistics", action="store_true", help="measure statistics instead of speed")
    parser.add_argument("--users", type=int, help="default: 1,000,000; for statistics those of civ and sen")
    parser.add_argument("--samples", type=float, default=144.0, help="per user")
    parser.add_argument("--scene", choices=("nation", "town"), default="nation")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the figures here as well")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(generate(given)))
        return
    if not given.statistics:
        columns = {"": speed(given)}
    elif given.users:
        columns = {"": statistics(given, given.users, given.samples)}
    else:
        columns = {name: statistics(given, *size) for name, size in SIZES.items()}
    show(columns)
    if given.json:
        given.json.write_text(json.dumps(columns, indent=1) + "\n")


def show(columns: dict[str, dict[str, object]]) -> None:
    print(f"{'':<46}" + "".join(f"{name:>40}" for name in columns))
    for line in next(iter(columns.values())):
        values = [column[line] for column in columns.values()]
        texts = [f"{v:,.4g}" if isinstance(v, float) else f"{v:,}" if isinstance(v, int) else str(v) for v in values]
        print(f"{line:<46}" + "".join(f"{text:>40}" for text in texts))


def speed(given: argparse.Namespace) -> dict[str, object]:
    """Time one run in a process of its own, so that its peak memory is its own."""
    with tempfile.TemporaryDirectory() as folder:
        small = child(given, Path(folder, "small.parquet"), 1_000)  # compiles the kernels if they are not cached
        return {"first use or cached start, 1,000 users [s]": small["seconds"]} | child(
            given, Path(folder, "people.parquet"), given.users or 1_000_000
        )


def child(given: argparse.Namespace, path: Path, users: int) -> dict[str, object]:
    options = {"samples": given.samples, "scene": given.scene, "threads": given.threads, "seed": given.seed}
    flags = [f"--{name}={value}" for name, value in options.items()]
    command = [sys.executable, __file__, f"--child={path}", f"--users={users}", *flags]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def generate(given: argparse.Namespace) -> dict[str, object]:
    from pyarrow import parquet

    from shoal.synth import synthesize

    before = time.perf_counter()
    synthesize(
        given.child,
        users=given.users,
        samples=given.samples,
        scene=given.scene,
        run=Run(threads=given.threads),
        seed=given.seed,
    )
    seconds = time.perf_counter() - before
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "users": given.users,
        "rows": parquet.read_metadata(given.child).num_rows,
        "threads": given.threads,
        "seconds": seconds,
        "peak memory [GB]": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9,
        "file [GB]": given.child.stat().st_size / 1e9,
    }


def statistics(given: argparse.Namespace, users: int, samples: float) -> dict[str, object]:
    from shoal.frame import transformer
    from shoal.synth import synthesize
    from shoal.synth.places import CRS, make_places

    table = synthesize(users=users, samples=samples, scene=given.scene, run=Run(threads=given.threads), seed=given.seed)
    places = make_places(given.scene, users, np.random.Generator(np.random.Philox(given.seed)))
    uid = table["uid"].to_numpy()
    second = table["datetime"].cast("int64").to_numpy() // 1000
    x, y = transformer(CRS).transform(table["lng"].to_numpy(), table["lat"].to_numpy())
    starts = np.flatnonzero(np.append(True, uid[1:] != uid[:-1]))
    counts = np.diff(np.append(starts, len(uid)))
    _, tower = np.unique(np.round(x) * 1e7 + np.round(y), return_inverse=True)
    rng = np.random.default_rng(given.seed)
    return {
        "users": users,
        "area [km2]": places.area_km2,
        "towns": places.towns,
        "towers": len(places.lng),
        "users per km2": users / places.area_km2,
        **activity(second, counts),
        **gyration(x, y, starts, counts, tower),
        **unicity(tower, second, counts, rng),
        **k_gap(second, x, y, starts, rng),
    }


def activity(second: np.ndarray, counts: np.ndarray) -> dict[str, object]:
    owner = np.repeat(np.arange(len(counts)), counts)
    gaps = np.diff(second)[owner[1:] == owner[:-1]] / 60.0
    day = second // 86_400 - second.min() // 86_400
    active = np.bincount(np.unique(owner * 1_000 + day) // 1_000)
    hours = np.bincount(second // 3_600 % 24, minlength=24)
    return {
        "samples per user": float(counts.mean()),
        "samples per user, 5 / 50 / 95 %": " / ".join(f"{q:.0f}" for q in np.percentile(counts, [5, 50, 95])),
        "samples per user and hour": float(counts.mean() / 24.0 / (day.max() + 1)),
        "active days, share of users above 75 %": float((active > 0.75 * (day.max() + 1)).mean()),
        "time between samples, mean [min]": float(gaps.mean()),
        "time between samples, median [min]": float(np.median(gaps)),
        "time between samples, share < 10 min": float((gaps < 10).mean()),
        "time between samples, share > 12 h": float((gaps > 720).mean()),
        "burstiness (sd - mean) / (sd + mean)": float((gaps.std() - gaps.mean()) / (gaps.std() + gaps.mean())),
        "busiest hour before 14 h": int(np.argmax(hours[:14])),
        "busiest hour": int(np.argmax(hours)),
        "share of samples from 0 to 6 h": float(hours[:6].sum() / hours.sum()),
    }


def gyration(
    x: np.ndarray, y: np.ndarray, starts: np.ndarray, counts: np.ndarray, tower: np.ndarray
) -> dict[str, object]:
    mean_x, mean_y = (np.repeat(np.add.reduceat(v, starts) / counts, counts) for v in (x, y))
    radius = np.sqrt(np.add.reduceat((x - mean_x) ** 2 + (y - mean_y) ** 2, starts) / counts) / 1_000.0
    owner = np.repeat(np.arange(len(counts)), counts)
    visited = np.bincount(np.unique(owner * (tower.max() + 1) + tower) // (tower.max() + 1))
    step = np.hypot(np.diff(x), np.diff(y))[owner[1:] == owner[:-1]]
    return {
        "radius of gyration, median [km]": float(np.median(radius)),
        "radius of gyration, mean [km]": float(radius.mean()),
        "radius of gyration, 90 / 99 % [km]": " / ".join(f"{q:.0f}" for q in np.percentile(radius, [90, 99])),
        "radius of gyration, share 0.5 to 20 km": float(((radius >= 0.5) & (radius <= 20)).mean()),
        "users who never leave a tower": float((visited == 1).mean()),
        "towers per user, median": float(np.median(visited)),
        "samples at another tower than the one before": float((step > 0).mean()),
    }


def unicity(tower: np.ndarray, second: np.ndarray, counts: np.ndarray, rng: np.random.Generator) -> dict[str, object]:
    """Share of users whom p of their own random (tower, hour) points single out."""
    owner = np.repeat(np.arange(len(counts)), counts)
    hour = second // 3_600 - second.min() // 3_600
    pairs = np.unique((tower * (hour.max() + 1) + hour) * len(counts) + owner)
    point, user = pairs // len(counts), pairs % len(counts)
    by_user = np.argsort(user, kind="stable")
    first = np.append(0, np.cumsum(np.bincount(user, minlength=len(counts))))
    chosen = rng.choice(len(counts), min(2_000, len(counts)), replace=False)
    alone = np.zeros(len(POINTS))
    for u in chosen:
        own = rng.permutation(point[by_user[first[u] : first[u + 1]]])
        crowd = None
        for p in POINTS:
            if p <= len(own):
                low, high = np.searchsorted(point, [own[p - 1], own[p - 1] + 1])
                here = user[low:high]
                crowd = here if crowd is None else np.intersect1d(crowd, here, assume_unique=True)
            alone[p - 1] += len(crowd) == 1
    return {
        f"unicity, {p} point(s) at (tower, 1 h)": float(a / len(chosen)) for p, a in zip(POINTS, alone, strict=True)
    }


def k_gap(
    second: np.ndarray, x: np.ndarray, y: np.ndarray, starts: np.ndarray, rng: np.random.Generator
) -> dict[str, object]:
    """2-gap of 300 users among all, by brute force (near centres of mass first), on the grid of 1 min and 100 m."""
    offsets = np.append(starts, len(second))
    t = (second // 60 - second.min() // 60).astype(np.int64)
    cells = np.floor(x / 100).astype(np.int64), np.floor(y / 100).astype(np.int64)
    centre = [np.add.reduceat(v, starts) / np.diff(offsets) for v in cells]
    chosen = rng.choice(len(starts), min(300, len(starts)), replace=False)
    gaps = np.empty(len(chosen))
    for i, a in enumerate(chosen):
        order = np.argsort(np.hypot(centre[0] - centre[0][a], centre[1] - centre[1][a]))
        gaps[i] = two_gap(a, order, offsets, t, *cells)
    return {
        "2-gap, 5 / 25 / 50 / 75 / 95 %": " / ".join(f"{q:.3f}" for q in np.percentile(gaps, [5, 25, 50, 75, 95])),
        "2-gap, share of users at 0": float((gaps == 0).mean()),
        "2-gap, share of users at 0.17 or less": float((gaps <= 0.17).mean()),
        "2-gap, share of users below 0.2": float((gaps < 0.2).mean()),
    }


@numba.njit
def two_gap(a, order, offsets, t, x, y):  # pragma: no cover
    best = 1.0
    for b in order:
        if b != a:
            best = min(best, stretch(a, b, offsets, t, x, y, best))
    return best


@numba.njit
def stretch(a, b, offsets, t, x, y, bound):  # pragma: no cover
    """Mean least effort over the samples of the longer trajectory; given up as soon as it exceeds `bound`."""
    if longer(b, a, offsets, t, x, y):
        a, b = b, a
    n, low, high = offsets[a + 1] - offsets[a], offsets[b], offsets[b + 1]
    total, middle = 0.0, low
    for i in range(offsets[a], offsets[a + 1]):
        while middle < high and t[middle] < t[i]:
            middle += 1
        least = 1.0
        for step in (1, -1):
            j = middle if step == 1 else middle - 1
            while low <= j < high:
                late = 0.5 * min(abs(t[j] - t[i]) / 480.0, 1.0)
                if late >= least:
                    break
                least = min(least, late + 0.5 * min((abs(x[j] - x[i]) + abs(y[j] - y[i])) / 200.0, 1.0))
                if late == 0.5:
                    break
                j += step
        total += least
        if total >= bound * n:
            return bound
    return total / n


@numba.njit
def longer(a, b, offsets, t, x, y):  # pragma: no cover
    """Return whether a has more samples than b, or as many and comes first by its samples."""
    n = offsets[a + 1] - offsets[a]
    m = offsets[b + 1] - offsets[b]
    if n != m:
        return n > m
    for d in range(n):
        i, j = offsets[a] + d, offsets[b] + d
        if t[i] != t[j]:
            return t[i] < t[j]
        if x[i] != x[j]:
            return x[i] < x[j]
        if y[i] != y[j]:
            return y[i] < y[j]
    return False


if __name__ == "__main__":
    main()
