"""What the search for groups gains, and what it takes: the method shoal with less and more of it, beside k-scale.

    python bench/bench_groups.py [--users 10000] [--k 2,5,10]

The mean owner cost (k-scale, Eq. 4) of everybody, and the seconds of `anonymize` alone. Generated call records; with
SHOAL_DATA set also tdrive_cdr and gowalla_nyc (users with at least 14 samples).
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

import shoal
from _bench import report
from shoal.comparison import compare, contests
from shoal.search.partition import EFFORTS, Effort

SOURCES = {"tdrive_cdr": {"tz": "Asia/Shanghai"}, "gowalla_nyc": {"tz": "America/New_York", "min_samples": 14}}


class Exactly(Effort):
    """An effort that is not raised where people are few."""

    def more(self, people):  # noqa: ARG002
        return self


def exactly(name, **changes):
    """Return a named effort as it stands, with some of it changed."""
    return Exactly(**{**vars(EFFORTS[name]), **changes})


DESIGNS = {
    "start alone": exactly("normal", rounds=1, sweeps=0),
    "pairs change places": exactly("normal", rounds=1, depth=2),
    "chains, one sweep": exactly("normal", rounds=1),
    "and space turned": exactly("normal"),
    "quick": replace(EFFORTS["quick"]),
    "normal": replace(EFFORTS["normal"]),
    "thorough": replace(EFFORTS["thorough"]),
}


def sources(users):
    """Return the people of each data set."""
    yield f"generated {users:,}", shoal.from_arrow(shoal.synthesize(users=users, seed=1))
    for name, options in SOURCES.items() if "SHOAL_DATA" in os.environ else ():
        yield name, shoal.read(Path(os.environ["SHOAL_DATA"]) / f"{name}.parquet", **options)


def runs(people, k):
    """Return (name, what came out) of every design, k-scale first."""
    yield "k-scale", *compare(people, contests(["k-scale"], [k]))
    for name, design in DESIGNS.items():
        EFFORTS["normal"] = design  # what the method calls normal, for this run
        yield name, *compare(people, contests(["shoal"], [k]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--k", default="2,5,10")
    arguments = parser.parse_args()
    rows = []
    for data, people in sources(arguments.users):
        for k in map(int, arguments.k.split(",")):
            literal = None
            for name, line in runs(people, k):
                cost = line.owner_cost
                literal = literal or cost
                row = {"data": data, "k": k, "search": name, "owner cost": f"{cost:,.0f}"}
                row |= {"against k-scale": f"{cost / literal:.3f}", "seconds": f"{line.seconds:.1f}"}
                rows.append(row | {"span, mean": f"{line.span_km_mean:.2f} km"})
                rows[-1] |= {"duration, mean": f"{line.duration_min_mean:.0f} min"}
                print(rows[-1], flush=True)
    report("groups", rows)


if __name__ == "__main__":
    main()
