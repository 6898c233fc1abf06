"""GLOVE: the same groups as the algorithm as written, how much faster, and how the time grows.

    python bench/bench_glove.py [--users 1000,5000] [--naive 1000] [--k 2] [--samples 252] [--merge k-merge]
    python bench/bench_glove.py --search 400 [--users 82728]

Generated call records as dense as GLOVE's d4d-civ (252 samples a user in 14 days); `--users 82728` is its size. The
yardstick is Alg. 1 compiled: the whole matrix of efforts, each over all pairs of samples, one thread as ours then. For
more users than `--naive` it is not run, and its time extrapolated with the square. The ratio and growth are told by the
time of all cores together, which other work on the machine touches less. `--search` only looks for the nearest of so
many users, which is the larger part of the work, to tell what the whole would take.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numba
import numpy as np

import shoal
from _bench import Clock, growth_exponent, measured, report, report_run
from shoal.measure.stretch import Stretch
from shoal.methods.glove import Glove
from shoal.run import Run
from shoal.search.glove_groups import _Greedy, glove_groups


@numba.njit(cache=False)
def naive_matrix(t, x, y, offsets, scale):
    """Lines 1-6 of Alg. 1, by Eq. 10 on samples: S[a, b] for all pairs."""
    space, slot, space_cap, time_cap = scale
    n = len(offsets) - 1
    efforts = np.full((n, n), np.inf)
    for a in range(n):
        for b in range(a):  # a has at least as many samples; of as many, b is the smaller list
            long, short = a, b
            if offsets[a + 1] - offsets[a] == offsets[b + 1] - offsets[b]:
                long, short = b, a
            total = 0
            for i in range(offsets[long], offsets[long + 1]):
                least = space_cap + time_cap
                for j in range(offsets[short], offsets[short + 1]):
                    apart = min(space * (abs(x[i] - x[j]) + abs(y[i] - y[j])), space_cap)
                    least = min(least, apart + min(slot * abs(t[i] - t[j]), time_cap))
                total += least
            whole = float(space_cap + time_cap) * (offsets[long + 1] - offsets[long])
            efforts[a, b] = efforts[b, a] = np.rint(total / whole * 1e12)
    return efforts


def naive_pairs(people):
    """Alg. 1 for k = 2, strict: nothing is ever compared with a merged pair."""
    efforts = naive_matrix(people.t, people.x, people.y, people.offsets, tuple(Stretch().scale(people.frame)))
    pairs = []
    for _ in range(len(people) // 2):
        first = int(np.argmin(efforts))  # the first of several: rows and columns are in canonical order
        a, b = divmod(first, len(people))
        pairs.append((min(a, b), max(a, b)))
        efforts[[a, b], :] = efforts[:, [a, b]] = np.inf
    return sorted(pairs)


def child_naive(path, threads):
    people = shoal.read(path)
    naive_pairs(shoal.from_arrow(shoal.synthesize(users=4, days=2, seed=1)))
    begun = time.process_time()
    pairs = naive_pairs(people)
    naive = time.process_time() - begun
    glove_groups(shoal.from_arrow(shoal.synthesize(users=50, days=2, seed=1)), 2, run=Run(threads=threads))
    begun = time.process_time()
    found = glove_groups(people, 2, run=Run(threads=threads))
    ours = time.process_time() - begun
    groups = sorted(map(tuple, found.plan.members.reshape(-1, 2).tolist()))
    report_run(ours, naive=naive, same=groups == pairs, begun=found.begun)


def child(path, k, merge):
    people = shoal.read(path)
    method = Glove(k=k, merge=merge)
    method.anonymize(shoal.from_arrow(shoal.synthesize(users=50, days=2, seed=1)))
    clock = Clock()
    begun, cpu = time.perf_counter(), time.process_time()
    release = method.anonymize(people, run=Run(progress=clock))
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    side_m, duration_s = release.spans()
    report_run(
        seconds,
        cpu=cpu,
        users=len(people),
        samples=people.samples,
        nearest=clock.seconds.get("nearest", 0.0),
        groups=clock.seconds.get("groups", 0.0),
        span_km=float(side_m.mean() / 1000),
        minutes=float(duration_s.mean() / 60),
    )


def child_search(path, searched):
    small = shoal.from_arrow(shoal.synthesize(users=50, days=2, seed=1))
    for people, n in ((small, 50), (shoal.read(path), searched)):
        begun = time.process_time()
        greedy = _Greedy(people, 2, loose=False, two_stage=False, run=Run(threads=1))
        prepared = time.process_time() - begun
        greedy.search(greedy.by_space[np.linspace(0, len(people) - 1, n).astype(int)])
    seconds = time.process_time() - begun - prepared
    report_run(seconds, users=len(people), samples=people.samples, prepared=prepared, begun=greedy._begun)  # noqa: SLF001


def searches(source, users, searched):
    """Return a row of what it takes to look for the nearest of some users."""
    run = measured(__file__, "--child-search", source(users), searched)
    row = {"users": f"{run['users']:,}", "samples": f"{run['samples']:,}", "prepare": f"{run['prepared']:.1f} s"}
    row |= {
        "one search": f"{run['seconds'] / searched * 1000:.2f} ms",
        "efforts begun": f"{run['begun'] / searched:.0f}",
    }
    return row | {"peak": f"{run['peak_gb']:.2f} GB"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", default="1000,5000")
    parser.add_argument("--naive", type=int, default=1000)
    parser.add_argument("--k", default="2")
    parser.add_argument("--samples", type=float, default=252.0)
    parser.add_argument("--merge", default="k-merge")
    parser.add_argument("--child", nargs=3)
    parser.add_argument("--search", type=int)
    parser.add_argument("--child-naive", nargs=1)
    parser.add_argument("--child-search", nargs=2)
    arguments = parser.parse_args()
    if arguments.child_naive:
        child_naive(arguments.child_naive[0], 1)
        return
    if arguments.child_search:
        child_search(arguments.child_search[0], int(arguments.child_search[1]))
        return
    if arguments.child:
        child(arguments.child[0], int(arguments.child[1]), arguments.child[2])
        return
    rows, facts, growth = [], {}, {}
    with tempfile.TemporaryDirectory() as folder:

        def source(users):
            path = Path(folder) / f"{users}.parquet"
            if not path.exists():
                shoal.synthesize(path, users=users, samples=arguments.samples, seed=1)
            return path

        if arguments.search:
            sizes = map(int, arguments.users.split(","))
            report("glove-search", [searches(source, users, arguments.search) for users in sizes])
            return
        naive = measured(__file__, "--child-naive", source(arguments.naive))
        facts[f"naive, {arguments.naive:,} users, one thread, s"] = naive["naive"]
        facts["ours, the same users, one thread, s"] = naive["seconds"]
        facts["times faster"] = naive["naive"] / naive["seconds"]
        facts["same groups"] = naive["same"]
        facts["share of pairs for which an effort was begun"] = naive["begun"] / (
            arguments.naive * (arguments.naive - 1) / 2
        )
        for k in map(int, arguments.k.split(",")):
            for users in map(int, arguments.users.split(",")):
                run = measured(__file__, "--child", source(users), k, arguments.merge)
                expected = naive["naive"] * (users / arguments.naive) ** 2
                rows.append({"users": f"{run['users']:,}", "k": k, "samples": f"{run['samples']:,}"})
                rows[-1] |= {"nearest": f"{run['nearest']:.1f} s", "groups": f"{run['groups']:.1f} s"}
                rows[-1] |= {
                    "in all": f"{run['seconds']:.1f} s",
                    "of all cores": f"{run['cpu']:.1f} s",
                    "peak": f"{run['peak_gb']:.2f} GB",
                }
                how = "" if users == arguments.naive else ", extrapolated"
                rows[-1] |= {"naive, k = 2, one thread": f"{expected:,.0f} s{how}"}
                rows[-1] |= {"side, mean": f"{run['span_km']:.2f} km", "duration, mean": f"{run['minutes']:.0f} min"}
                growth.setdefault(k, []).append((run["users"], run["cpu"]))
                print(rows[-1], flush=True)
    for k, points in growth.items():
        if len(points) > 1:
            facts[f"growth exponent, k = {k}"] = growth_exponent(points)
    report("glove", rows, facts)


if __name__ == "__main__":
    main()
