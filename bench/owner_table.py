"""Who tells whose record is whose: the tables of docs/owner.md, as Markdown.

    SHOAL_DATA=… python bench/owner_table.py [--users 1200] [--k 2,5,10] [--data generated,tdrive_cdr,gowalla_nyc]

Every method and variant on a sample of the people, attacked by `owner` (knowing the victim only, and everybody) and by
`intersect-covers`; all people are victims. `+members` and `+sum` merge the same people again with another objective.
What is done is kept in `--folder`, so that a run goes on where it was stopped.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

import shoal
from shoal.attacks import open_target, play
from shoal.lists import take_lists
from shoal.methods.records import merge_all
from shoal.publishing.owners import with_random_owners
from shoal.trajectories import Trajectories

SOURCES = {
    "tdrive_cdr": {"tz": "Asia/Shanghai"},
    "gowalla_nyc": {"tz": "America/New_York", "min_samples": 14},
}
VARIANTS = {
    "shoal": lambda k: shoal.Shoal(k=k),
    "k-scale full": lambda k: shoal.KScale(k=k, constraint="full"),
    "k-concealment": lambda k: shoal.KConcealment(k=k),
    "k-pick": lambda k: shoal.KScale(k=k, constraint="k-pick"),
    "nu-k-pick": lambda k: shoal.KScale(k=k),
    "nu-k-pick, cap 2(k−1)": lambda k: shoal.KScale(k=k, max_members=2 * (k - 1)),
    "nu-k-pick, cap k−1": lambda k: shoal.KScale(k=k, max_members=k - 1),
    "marginal, cap 2(k−1)": lambda k: shoal.KScale(k=k, picking="marginal"),
    "marginal, cap k−1": lambda k: shoal.KScale(k=k, picking="marginal", max_members=k - 1),
    "nu-k-pick +members": lambda k: shoal.KScale(k=k),
    "nu-k-pick +sum": lambda k: shoal.KScale(k=k),
    "k-pick +members": lambda k: shoal.KScale(k=k, constraint="k-pick"),
}


def sample(people, users):
    """Return some of the people, drawn at random."""
    chosen = np.sort(np.random.default_rng(1).permutation(len(people))[:users])
    offsets, rows = take_lists(people.offsets, chosen)
    columns = (people.t[rows], people.x[rows], people.y[rows])
    return Trajectories(offsets, *columns, people.frame, people.labels.take(chosen))


def people_of(name, users):
    if name == "generated":
        return shoal.from_arrow(shoal.synthesize(users=users, seed=1))
    return sample(shoal.read(Path(os.environ["SHOAL_DATA"]) / f"{name}.parquet", **SOURCES[name]), users)


def released(people, variant, k):
    """Anonymize, and draw the owners where they are left to chance."""
    release = VARIANTS[variant](k).anonymize(people)
    members = with_random_owners(release.members, np.random.default_rng(1))
    release = replace(release, members=members)
    if "+" not in variant:
        return release
    offsets, boxes = merge_all(people, members.offsets, members.indices, variant.split("+")[1])
    return replace(release, offsets=offsets, boxes=boxes)


def attacked(people, variant, k):
    target = open_target(people, released(people, variant, k))
    plays = {
        "victim": ("owner", {}),
        "everybody": ("owner", {"knows": "everybody"}),
        "covers": ("intersect-covers", {}),
    }
    done = {}
    for name, (attack, settings) in plays.items():
        begun = time.perf_counter()
        done[name] = play(target, attack, victims=len(people), **settings).to_dict()
        done[name]["seconds"] = time.perf_counter() - begun
    return done


def kept(path, make):
    """Return what a JSON file holds; if it is not there yet, make it first."""
    if not path.exists():
        begun = time.perf_counter()
        made = make()
        path.with_suffix(".part").write_text(json.dumps(made))
        path.with_suffix(".part").replace(path)
        print(f"{path.stem}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    return json.loads(path.read_text())


def told(row):
    return f"{row['success']:.1%} ({row['success_low'] * 100:.1f}–{row['success_high'] * 100:.1f})"


def line(variant, k, done):
    victim, everybody, covers = (done[name] for name in ("victim", "everybody", "covers"))
    rule = max(victim["rows"][1:-1], key=lambda row: row["success"])
    figures, merged = victim["figures"], covers["rows"][0]
    return {
        "k": str(k),
        "method": variant,
        "1/k": f"{1 / k:.0%}",
        "candidates": f"{rule['candidates_mean']:.1f}",
        "best rule": f"{rule['success']:.1%}, {rule['adversary']}",
        "learned": told(victim["rows"][-1]),
        "effective k, mean / median": f"{figures['effective_k_mean']:.2f} / {figures['effective_k_median']:.2f}",
        "below k/2": f"{figures['effective_k_below_half']:.0%}",
        "knows everybody": told(everybody["rows"][-1]),
        "effective k": f"{everybody['figures']['effective_k_mean']:.2f}",
        "cost left": f"{merged['left']:.0%}",
        "all that cover": f"{covers['rows'][1]['left']:.0%}",
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="generated,tdrive_cdr,gowalla_nyc")
    parser.add_argument("--users", type=int, default=1200)
    parser.add_argument("--k", default="2,5,10")
    parser.add_argument("--methods", default=";".join(VARIANTS), help="with semicolons")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "shoal-owner-table")
    arguments = parser.parse_args()
    arguments.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name in arguments.data.split(","):
        people, rows = people_of(name, arguments.users), []
        for k in map(int, arguments.k.split(",")):
            for variant in arguments.methods.split(";"):
                title = f"{name}-{len(people)}-{variant.replace(' ', '-')}-{k}"

                def make(variant=variant, k=k, people=people):
                    return attacked(people, variant, k)

                rows.append(line(variant, k, kept(arguments.folder / f"{title}.json", make)))
        print(f"\n### {name}: {len(people):,} people\n")
        print("| " + " | ".join(rows[0]) + " |\n|" + "---|" * len(rows[0]))
        print("\n".join("| " + " | ".join(row.values()) + " |" for row in rows), flush=True)


if __name__ == "__main__":
    main()
