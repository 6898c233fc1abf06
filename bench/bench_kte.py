"""kte-hide, whole command (read, anonymize, measure, write, verify), by number of users and by τ = ε.

    python bench/bench_kte.py [--users 3000,10000,29191] [--tau 30min] [--scene town] [--days 14] [--k 2] [--folder DIR]

Generated call records: a town with 0.9 samples per user and hour (the size of kte-hide's `abi` is 29,191 users),
or a nation with 0.75 (`civ`). Each run is a process of its own. With --folder the generated files stay. `CPU` is the
time of all threads, compiling left out by a small run before; growth is measured by it, which other work on the machine
disturbs least.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import shoal
from _bench import Clock, growth_exponent, measured, report, report_run
from shoal.pipeline import publish
from shoal.run import Run

STAGES = {
    "read": ("look", "parse", "read", "project", "sort"),
    "hiding sets": ("hiding sets",),
    "records": ("records",),
}
PER_HOUR = {"town": 0.9, "nation": 0.75}


def child(path, k, tau):
    parameters = {"k": k, "tau": tau, "epsilon": tau}
    few = shoal.from_arrow(shoal.synthesize(users=60, scene="town", days=1, seed=1))
    shoal.verify(few, shoal.KteHide(**parameters).anonymize(few), max_suppressed=1.0)
    clock, begun = Clock(), time.process_time()
    with tempfile.TemporaryDirectory(dir=Path(path).parent) as folder:
        done = publish(path, Path(folder) / "release.parquet", shoal.KteHide(**parameters), run=Run(progress=clock))
    cpu_s = time.process_time() - begun
    side_m, duration_s = done.release.spans()
    quartiles = {
        "sides_m": (2 * np.quantile(side_m, [0.25, 0.5, 0.75])).tolist(),  # the paper's: sum of both
        "durations_s": np.quantile(duration_s, [0.25, 0.5, 0.75]).tolist(),
        "side_m_mean": 2 * float(side_m.mean()),
        "duration_s_mean": float(duration_s.mean()),
    }
    hour = done.release.frame.epoch_s(done.release.boxes[:, 0]) // 3600 % 24
    rhythm = [(2 * side_m[hour // 3 == part].mean(), duration_s[hour // 3 == part].mean()) for part in range(8)]
    stages = {stage: clock.seconds_of(names) for stage, names in STAGES.items()}
    report_run(
        done.seconds,
        users=done.verdict.figures["users"],
        samples=done.verdict.figures["samples"],
        suppressed=done.verdict.figures["suppressed_samples"],
        leakage=done.verdict.figures["leakage"],
        rhythm=rhythm,
        cpu_s=cpu_s,
        **quartiles,
        **stages,
    )


def row_of(run, tau):
    rest = run["seconds"] - sum(run[stage] for stage in STAGES)
    low, middle, high = (side / 1000 for side in run["sides_m"])
    short, usual, long = (duration / 60 for duration in run["durations_s"])
    return {
        "users": f"{run['users']:,}",
        "samples": f"{run['samples']:,}",
        "tau": tau,
        **{stage: f"{run[stage]:.0f} s" for stage in STAGES},
        "measure, write, verify": f"{rest:.0f} s",
        "whole": f"{run['seconds']:.0f} s",
        "CPU": f"{run['cpu_s']:.0f} s",
        "peak": f"{run['peak_gb']:.2f} GB",
        "suppressed": f"{run['suppressed'] / run['samples']:.2%}",
        "leak above": f"{run['leakage']['share_above']:.2%}",
        "space, mean": f"{run['side_m_mean'] / 1000:.2f} km",
        "quartiles (km)": f"{low:.1f} {middle:.1f} {high:.1f}",
        "time, mean": f"{run['duration_s_mean'] / 60:.1f} min",
        "quartiles (min)": f"{short:.0f} {usual:.0f} {long:.0f}",
    }


def day_of(run, tau, part):
    space, duration = run["rhythm"][part]
    hours = f"{3 * part}-{3 * part + 3} h"
    means = {"space, mean": f"{space / 1000:.2f} km", "time, mean": f"{duration / 60:.1f} min"}
    return {"users": f"{run['users']:,}", "tau": tau, "hours": hours, **means}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", default="3000,10000,29191")
    parser.add_argument("--tau", default="30min")
    parser.add_argument("--scene", default="town", choices=sorted(PER_HOUR))
    parser.add_argument("--days", type=int, default=14)
    parser.add_argument("--k", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--child", nargs=3)
    arguments = parser.parse_args()
    if arguments.child:
        path, k, tau = arguments.child
        child(path, int(k), tau)
        return
    rows, by_day, facts = [], [], {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        for tau in arguments.tau.split(","):
            points = []
            for users in map(int, arguments.users.split(",")):
                path = folder / f"{arguments.scene}-{users}-{arguments.days}.parquet"
                if not path.exists():
                    rate, days = PER_HOUR[arguments.scene], arguments.days
                    many = {"users": users, "days": days, "samples": rate * 24 * days}
                    shoal.synthesize(path, scene=arguments.scene, seed=1, **many)
                run = measured(__file__, "--child", path, arguments.k, tau)
                points.append((run["users"], run["cpu_s"]))
                rows.append(row_of(run, tau))
                by_day += [day_of(run, tau, part) for part in range(8)]
                print(rows[-1], flush=True)
            if len(points) > 1:
                facts[f"growth exponent, {tau}"] = growth_exponent(points)
    report("kte", rows, facts)
    report("kte-day", by_day)


if __name__ == "__main__":
    main()
