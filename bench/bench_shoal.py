"""The method shoal, whole command (read, anonymize, write, verify), by number of users.

    python bench/bench_shoal.py [--users 10000,30000,100000,300000,1000000] [--k 2,5] [--effort normal] [--folder DIR]

Generated call records, 144 samples a user. Each run is a process of its own. With --folder the generated files, the
releases and what each run took stay, for `bench_verify.py`.
"""

import argparse
import json
import tempfile
from pathlib import Path

import shoal
from _bench import Clock, growth_exponent, measured, report, report_run
from shoal.methods import Shoal
from shoal.pipeline import publish
from shoal.run import Run

STAGES = {
    "read": ("look", "parse", "read", "project", "sort"),
    "partners": ("partners",),
    "groups": ("groups 1 of 2", "groups 2 of 2", "groups 1 of 4", "groups 2 of 4", "groups 3 of 4", "groups 4 of 4"),
    "records": ("records",),
}


def files(folder, users, k):
    """Name a run's files: the events, and the release, the audit and the figures of a run on them."""
    stem = f"generated-{users}"
    made = (folder / f"{stem}-k{k}.{end}" for end in ("release.parquet", "release.audit.parquet", "json"))
    return folder / f"{stem}.parquet", *made


def anonymize(folder, users, k, effort="normal"):
    """Run the whole command in a process of its own, on generated people; give what it took, and keep it."""
    path, release, audit, figures = files(folder, users, k)
    if not path.exists():
        shoal.synthesize(path, users=users, seed=1)
    run = measured(__file__, "--child", path, release, audit, k, effort)
    figures.write_text(json.dumps(run))
    return run


def child(path, release, audit, k, effort):
    clock = Clock()
    method = Shoal(k=k, effort=effort)
    done = publish(path, release, method, audit=audit, overwrite=True, run=Run(progress=clock))
    figures = done.figures()
    stages = {stage: clock.seconds_of(names) for stage, names in STAGES.items()}
    report_run(done.seconds, users=figures["records"], samples=figures["samples"], figures=figures, **stages)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", default="10000,30000,100000,300000,1000000")
    parser.add_argument("--k", default="2,5")
    parser.add_argument("--effort", default="normal")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--child", nargs=5)
    arguments = parser.parse_args()
    if arguments.child:
        path, release, audit, k, effort = arguments.child
        child(path, release, audit, int(k), effort)
        return
    rows, facts = [], {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        for k in map(int, arguments.k.split(",")):
            points = []
            for users in map(int, arguments.users.split(",")):
                run = anonymize(folder, users, k, arguments.effort)
                points.append((run["users"], run["seconds"]))
                rest = run["seconds"] - sum(run[stage] for stage in STAGES)
                rows.append({"k": k, "users": f"{run['users']:,}", "samples": f"{run['samples']:,}"})
                rows[-1] |= {stage: f"{run[stage]:.1f} s" for stage in STAGES}
                rows[-1] |= {"write, verify": f"{rest:.1f} s", "whole": f"{run['seconds']:.1f} s"}
                rows[-1] |= {"peak": f"{run['peak_gb']:.2f} GB"}
                rows[-1] |= {"side, mean": f"{run['figures']['side_m_mean'] / 1000:.2f} km"}
                rows[-1] |= {"duration, mean": f"{run['figures']['duration_s_mean'] / 60:.0f} min"}
                print(rows[-1], flush=True)
            if len(points) > 1:
                facts[f"growth exponent, k = {k}"] = growth_exponent(points)
    report("shoal", rows, facts)


if __name__ == "__main__":
    main()
