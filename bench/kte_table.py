"""kte-hide over (τ, ε) and k, verified from the written files: the tables of docs/papers/kte-hide.md, as Markdown.

    SHOAL_DATA=… python bench/kte_table.py [--users 400] [--k 2,3] [--data generated,tdrive_cdr,gowalla_nyc]

Generated call records of a town (three days, 65 samples a person) and, with SHOAL_DATA set, so many users of the data
sets, chosen by a hash of their labels. Each row is printed as soon as it is done.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np

import shoal
from _bench import some_users

TIMES = (("10min", "10min"), ("30min", "30min"), ("60min", "30min"), ("120min", "60min"), ("240min", "240min"))
COLUMNS = ("data", "k", "τ", "ε", "verified", "windows", "suppressed", "leak above ε", "longest", "space", "time")


def sources(arguments, folder):
    """Return the people of each data set that was asked for."""
    for name in arguments.data.split(","):
        path = folder / f"{name}.parquet"
        if name == "generated":
            shoal.synthesize(path, users=arguments.users, scene="town", days=3, samples=65, seed=1)
        elif data := os.environ.get("SHOAL_DATA"):
            some_users(Path(data) / f"{name}.parquet", path, arguments.users)
        else:
            print(f"{name} left out: SHOAL_DATA is not set", file=sys.stderr)
            continue
        yield name, shoal.read(path)


def row_of(name, people, k, tau, epsilon, folder):
    """Anonymize, write, verify from the files with the audit; give a line of the table."""
    release, audit = folder / "release.parquet", folder / "audit.parquet"
    made = shoal.KteHide(k=k, tau=tau, epsilon=epsilon).anonymize(people)
    made.write(release, audit=audit, check=lambda *_: None, overwrite=True)
    verdict = shoal.verify(people, release, audit=audit, max_suppressed=1.0)
    side_m, duration_s = made.spans()
    figures, leakage = verdict.figures, verdict.figures["leakage"]
    return (
        name,
        k,
        tau,
        epsilon,
        "yes" if verdict.ok and not figures["windows_ending_short"] else "NO",
        f"{figures['windows']:,}",
        f"{made.suppressed / people.samples:.2%}",
        f"{leakage['share_above']:.2%}",
        f"{leakage['max_s'] / 3600:.1f} h",
        f"{2 * np.median(side_m) / 1000:.1f} km",
        f"{np.median(duration_s) / 60:.0f} min",
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=400)
    parser.add_argument("--k", default="2,3")
    parser.add_argument("--data", default="generated,tdrive_cdr,gowalla_nyc")
    arguments = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, people in sources(arguments, folder):
            for k in map(int, arguments.k.split(",")):
                for tau, epsilon in TIMES:
                    row = row_of(name, people, k, tau, epsilon, folder)
                    print("| " + " | ".join(map(str, row)) + " |", flush=True)


if __name__ == "__main__":
    main()
