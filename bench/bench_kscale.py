"""k-scale by the paper's recipe, whole command (read, anonymize, write, verify), by number of users.

    python bench/bench_kscale.py [--users 1000,3000,10000] [--k 2,5]

Generated call records; with SHOAL_DATA set also tdrive_cdr and gowalla_nyc, whole. Each run is a process of its own.
"""

import argparse
import os
import tempfile
from pathlib import Path

import shoal
from _bench import Clock, growth_exponent, measured, report, report_run
from shoal.methods import KScale
from shoal.pipeline import publish
from shoal.run import Run

STAGES = {"candidates": "proxy", "pair costs": "costs", "records": "records"}


def child(path, k):
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        done = publish(path, Path(folder) / "release.parquet", KScale(k=k), run=Run(progress=clock))
    side_m, duration_s = done.release.spans()
    report_run(
        done.seconds,
        users=len(done.release),
        samples=done.release.samples,
        span_km=float(side_m.mean() / 1000),
        minutes=float(duration_s.mean() / 60),
        **{short: clock.seconds.get(name, 0.0) for name, short in STAGES.items()},
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", default="1000,3000,10000")
    parser.add_argument("--k", default="2,5")
    parser.add_argument("--child", nargs=2)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments.child[0], int(arguments.child[1]))
        return
    rows, growth = [], {}
    with tempfile.TemporaryDirectory() as folder:
        sources = {}
        for users in map(int, arguments.users.split(",")):
            sources[f"generated {users:,}"] = path = Path(folder) / f"{users}.parquet"
            shoal.synthesize(path, users=users, seed=1)
        if data := os.environ.get("SHOAL_DATA"):
            sources |= {name: Path(data) / f"{name}.parquet" for name in ("tdrive_cdr", "gowalla_nyc")}
        for k in map(int, arguments.k.split(",")):
            for name, path in sources.items():
                run = measured(__file__, "--child", path, k)
                rows.append({"data": name, "k": k, "users": f"{run['users']:,}", "samples": f"{run['samples']:,}"})
                rows[-1] |= {short: f"{run[short]:.1f} s" for short in STAGES.values()}
                rows[-1] |= {"whole": f"{run['seconds']:.1f} s", "peak": f"{run['peak_gb']:.2f} GB"}
                rows[-1] |= {"side, mean": f"{run['span_km']:.2f} km", "duration, mean": f"{run['minutes']:.0f} min"}
                if name.startswith("generated"):
                    growth.setdefault(k, []).append((run["users"], run["seconds"]))
    facts = {}
    for k, points in growth.items():
        if len(points) > 1:
            facts[f"growth exponent, k = {k}"] = growth_exponent(points)
    report("kscale", rows, facts)


if __name__ == "__main__":
    main()
