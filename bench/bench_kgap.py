"""The exact k-gap against brute force, and its growth with the number of people.

    python bench/bench_kgap.py [--users 5000,10000,20000,40000,82728] [--subset 3000] [--samples 252] [--k 2]
        [--sample 500]

Generated call records. Against brute force (every pair once, all samples, compiled, as many threads): the same values,
seconds, and pairs whose effort is computed, whole or in part; on a subset of the people, in one run. Then everybody by
number of people, each run a process of its own, reading not counted: seconds on the clock, and of all cores together,
by which growth is told; with `--sample` for that many people drawn, each against everybody. 82,728 people of 252
samples are the size of GLOVE's `d4d-civ`.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import shoal
from _bench import best_of, growth_exponent, measured, report, report_run
from shoal.jit import jit
from shoal.kernels.kgap import rows_of
from shoal.kernels.samples import samples_of
from shoal.kernels.stretch import effort_sum
from shoal.lists import even_ranges
from shoal.measure import Stretch
from shoal.parallel import run_ranges


@jit
def efforts_of_rows(samples, scale, start, stop, efforts):
    """Fill the efforts of the pairs (u, v), u < v, for u in start…stop-1."""
    offsets = samples.offsets
    whole = scale.space_cap + scale.time_cap
    for u in range(start, stop):
        for v in range(u + 1, len(offsets) - 1):
            a, b = (v, u) if offsets[v + 1] - offsets[v] > offsets[u + 1] - offsets[u] else (u, v)
            most = whole * (offsets[a + 1] - offsets[a])
            total = effort_sum(samples, rows_of(samples, a), rows_of(samples, b), scale, most)
            efforts[u, v] = efforts[v, u] = total / most


def brute_force(people, k):
    """Return everybody's k-gap from the whole matrix."""
    efforts = np.full((len(people), len(people)), np.inf)
    arrays = (samples_of(people), Stretch().scale(people.frame))
    pairs = np.arange(len(people))[::-1]
    run_ranges(lambda start, stop: efforts_of_rows(*arrays, start, stop, efforts), even_ranges(pairs, 20_000))
    return np.sort(np.partition(efforts, k - 2, axis=1)[:, : k - 1], axis=1).mean(axis=1)


def child(path, k, sample):
    people = shoal.read(path)
    shoal.k_gap(people, k, sample=1)  # compiled now
    begun, cpu = time.perf_counter(), time.process_time()
    gaps = shoal.k_gap(people, k, sample=sample or None)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    median = float(np.median(gaps.gap))
    looked = len(gaps.users)
    report_run(seconds, cpu=cpu, looked=looked, samples=people.samples, begun=gaps.begun, median=median)


def against_brute_force(path, k, subset):
    people = shoal.read(path)
    shoal.k_gap(people, k, sample=1)  # compiled now
    brute_force(people, k)
    found = {}

    def ours():
        found["ours"] = shoal.k_gap(people, k)

    def theirs():
        found["brute force"] = brute_force(people, k)

    seconds = best_of({"ours": ours, "brute force": theirs}, repeats=2)
    difference = float(np.abs(found["ours"].gap[:, 0] - found["brute force"]).max())
    pairs = subset * (subset - 1) // 2
    return {
        "largest difference": f"{difference:.1e}",
        "speed against brute force": seconds["brute force"] / seconds["ours"],
        "pairs against brute force": pairs / found["ours"].begun,
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", default="5000,10000,20000,40000,82728")
    parser.add_argument("--subset", type=int, default=3000)
    parser.add_argument("--samples", type=int, default=252)
    parser.add_argument("--k", type=int, default=2)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--child", nargs=3)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child[0], *map(int, arguments.child[1:]))
        return
    rows, facts, points = [], {}, []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generated.parquet"
        shoal.synthesize(path, users=arguments.subset, samples=arguments.samples, seed=1)
        facts[f"{arguments.subset:,} people"] = ""
        facts |= against_brute_force(path, arguments.k, arguments.subset)
        for users in map(int, arguments.users.split(",")):
            shoal.synthesize(path, users=users, samples=arguments.samples, seed=1, overwrite=True)
            run = measured(__file__, "--child", path, arguments.k, arguments.sample)
            pairs, each = (users - 1) / 2, run["begun"] / run["looked"]
            points.append((users, run["cpu"]))
            row = {"people": f"{users:,}", "samples": f"{run['samples']:,}", "looked at": f"{run['looked']:,}"}
            row |= {"k-gap, median": f"{run['median']:.4f}", "efforts begun for one": f"{each:.0f}"}
            row |= {"fewer than pairs": f"{pairs / each:.0f}×", "seconds": f"{run['seconds']:.1f}"}
            row |= {"of all cores": f"{run['cpu']:.1f}"}
            rows.append(row | {"peak": f"{run['peak_gb']:.2f} GB"})
            print(rows[-1], flush=True)
    if len(points) > 1:
        facts["growth exponent of the time of all cores"] = growth_exponent(points)
    report("kgap", rows, facts)


if __name__ == "__main__":
    main()
