"""k-merge pair kernel against its twin in C (-O3 -march=native), and two threads against one.

    python bench/bench_kmerge.py [--pairs 100000] [--repeats 7]

Needs gcc. Pairs are of users of generated call records, near each other in space, as candidates are.
"""

import argparse
import ctypes
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import shoal
from _bench import best_of, report
from shoal.kernels.merge import owner_cost_pairs
from shoal.kernels.price import PAPERS
from shoal.kernels.samples import samples_of
from shoal.lists import even_ranges
from shoal.parallel import run_ranges
from shoal.search import proxy_candidates, signatures


def c_twin(folder):
    library = Path(folder) / "kmerge.so"
    source = Path(__file__).with_name("kmerge.c")
    subprocess.run(["gcc", "-O3", "-march=native", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    function = ctypes.CDLL(str(library)).owner_cost_pairs
    function.restype = None
    return function


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()

    people = shoal.from_arrow(shoal.synthesize(users=2000, seed=1))
    first, second = proxy_candidates(signatures(people), 200)
    chosen = np.sort(np.random.default_rng(0).permutation(len(first))[: arguments.pairs])
    first, second = first[chosen], second[chosen]
    n = len(first)
    outputs = [np.empty(n) for _ in range(6)]
    samples = samples_of(people)
    longest = 2 * int(people.counts.max()) + 2
    scratch = np.empty((longest, 5), np.int64), np.empty((longest, 2)), np.empty(longest, np.int64)
    scratch = *scratch, np.empty((longest, 2))

    def ours():
        owner_cost_pairs(samples, first, second, PAPERS, outputs[0], outputs[1])

    def ours_on_two_threads():
        def part(start, stop):
            h = slice(start, stop)
            owner_cost_pairs(samples, first[h], second[h], PAPERS, outputs[4][h], outputs[5][h])

        run_ranges(part, even_ranges(people.counts[first] + people.counts[second], 1_000_000), threads=2)

    with tempfile.TemporaryDirectory() as folder:
        function = c_twin(folder)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (*samples, first, second)]
        rest = [ctypes.c_void_p(a.ctypes.data) for a in (*scratch, outputs[2], outputs[3])]

        def theirs():
            function(*pointers, ctypes.c_int64(n), *rest)

        times = best_of({"C": theirs, "shoal": ours, "shoal, 2 threads": ours_on_two_threads}, arguments.repeats)
    if not all((outputs[i] == outputs[i + 2]).all() for i in (0, 1)):
        raise SystemExit("the kernel and its C twin disagree")
    rows = [
        {"what": name, "µs per pair": f"{time / n * 1e6:.2f}", "speed against C": f"{times['C'] / time:.2f}"}
        for name, time in times.items()
    ]
    report(
        "kmerge",
        rows,
        facts={
            "pairs": n,
            "samples per user": float(people.counts.mean()),
            "2 threads / 1": times["shoal"] / times["shoal, 2 threads"],
        },
    )


if __name__ == "__main__":
    main()
