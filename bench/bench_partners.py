"""How good candidates are: k-scale's proxy and our time sketch against all pairs.

    python bench/bench_partners.py [--users 2000] [--candidates 20,50,100,200,400]

For every user, the cheapest partner among the K nearest by proxy or sketch against the cheapest of all: how often it
is the same (recall), and how much dearer it is on average (excess), for the `sum` cost (k^(τ,ε)-anonymity, Eq. 3) and
for both owner costs added (k-scale, Eq. 4). Generated call records of 10,000 people; with SHOAL_DATA set also
tdrive_cdr and gowalla_nyc (users with at least 14 samples); a sample of the users of each.
"""

import argparse
import os
import time
from pathlib import Path

import numpy as np

import shoal
from _bench import report
from shoal.kernels.merge import SUM, MemberLists, MergedRecords, merge_records, owner_cost_pairs
from shoal.kernels.price import PAPERS
from shoal.kernels.proxy import nearest_by_proxy
from shoal.kernels.samples import samples_of
from shoal.lists import even_ranges, take_lists
from shoal.parallel import run_ranges
from shoal.search import signatures, sketch_candidates
from shoal.trajectories import Trajectories


def sample(people, users):
    """Return some of the people, evenly by number of samples."""
    chosen = np.unique(np.linspace(0, len(people) - 1, min(users, len(people))).astype(np.int64))
    offsets, rows = take_lists(people.offsets, chosen)
    columns = (people.t[rows], people.x[rows], people.y[rows])
    return Trajectories(offsets, *columns, people.frame, people.labels.take(chosen))


def all_costs(people):
    """Return the matrices of both costs over all pairs."""
    first, second = np.triu_indices(len(people), 1)
    samples = samples_of(people)
    costs = {"sum": np.empty(len(first)), "owners": np.empty(len(first))}

    def fill(start, stop):
        part = slice(start, stop)
        a, b = np.empty(stop - start), np.empty(stop - start)
        owner_cost_pairs(samples, first[part], second[part], PAPERS, a, b)
        costs["owners"][part] = a + b
        pairs = np.stack([first[part], second[part]], axis=1).ravel()
        nothing = np.zeros(stop - start, np.int64)
        ends = np.arange(0, len(pairs) + 1, 2)
        merged = MergedRecords(np.empty((0, 6), np.int32), nothing, nothing, costs["sum"][part])
        merge_records(samples, MemberLists(ends, pairs), SUM, PAPERS, merged)

    run_ranges(fill, even_ranges(people.counts[first] + people.counts[second], 500_000))
    matrices = {}
    for name, values in costs.items():
        matrix = np.full((len(people), len(people)), np.inf)
        matrix[first, second] = matrix[second, first] = values
        matrices[name] = matrix
    return matrices


def by_proxy(people, n):
    squares = signatures(people)
    nearest = np.empty((len(people), n), np.int64)
    nearest_by_proxy(*squares, 0, len(people), nearest)
    return nearest


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--candidates", default="20,50,100,200,400")
    arguments = parser.parse_args()
    sources = {"generated": shoal.from_arrow(shoal.synthesize(users=10_000, seed=1))}
    if data := os.environ.get("SHOAL_DATA"):
        sources["tdrive_cdr"] = shoal.read(Path(data) / "tdrive_cdr.parquet", tz="Asia/Shanghai")
        sources["gowalla_nyc"] = shoal.read(Path(data) / "gowalla_nyc.parquet", min_samples=14)
    rows, facts = [], {}
    for name, everyone in sources.items():
        people = sample(everyone, arguments.users)
        truth = all_costs(people)
        for k in map(int, arguments.candidates.split(",")):
            row = {"data": name, "users": len(people), "K": k}
            for search, candidates in (("proxy", by_proxy), ("sketch", sketch_candidates)):
                begun = time.perf_counter()
                chosen = candidates(people, k)
                facts[f"{name}, {search}, seconds"] = time.perf_counter() - begun
                for cost, matrix in truth.items():
                    best = matrix.min(axis=1)
                    found = np.take_along_axis(matrix, chosen, axis=1).min(axis=1)
                    row[f"{search}, {cost}"] = f"{np.mean(found == best):.1%} / {np.mean(found / best - 1):.2%}"
            rows.append(row)
    report("partners", rows, facts)


if __name__ == "__main__":
    main()
