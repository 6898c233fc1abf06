"""What each attack achieves against each method: the tables of docs/attacks.md, as Markdown.

    SHOAL_DATA=… python bench/attack_table.py [--users 2000] [--k 2,5,10] [--victims 1000] [--output table.md]

Generated call records and, with SHOAL_DATA set, tdrive_cdr and gowalla_nyc (users of 14 samples and more): `--users` of
each. Every release is written and verified as `shoal anonymize` does, and attacked from its file and audit file; what
is done is kept in `--folder`, so that a run goes on where it was stopped.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import shoal
from _bench import some_users
from shoal.attacks import open_target, play
from shoal.attacks.knowledge import percent
from shoal.comparison import contests

METHODS = (
    "shoal",
    "k-scale:full",
    "glove",
    "k-concealment",
    "k-scale:k-pick",
    "k-scale",
    "k-scale:marginal",
)
NAMES = {"k-scale": "k-scale: nu-k-pick, literal", "k-scale:marginal": "k-scale: nu-k-pick, marginal"}
SOURCES = {
    "tdrive_cdr": {"tz": "Asia/Shanghai"},
    "gowalla_nyc": {"tz": "America/New_York", "min_samples": 14},
}
ATTACKS = {
    "points": {},
    "top-locations": {},
    "home-work": {},
    "window": {},
    "owner": {"knows": "victim"},
    "intersect-covers": {},
}


def sources(arguments, folder):
    """Return the people of each data set that was asked for."""
    for name in arguments.data.split(","):
        if name == "generated":
            path = folder / f"generated-{arguments.users}.parquet"
            if not path.exists():
                shoal.synthesize(path, users=arguments.users, seed=1)
            yield name, shoal.read(path)
        elif data := os.environ.get("SHOAL_DATA"):
            path = folder / f"{name}-{arguments.users}.parquet"
            if not path.exists():
                some_users(Path(data) / f"{name}.parquet", path, arguments.users, rows=14)
            yield name, shoal.read(path, **SOURCES[name])
        else:
            print(f"{name} left out: SHOAL_DATA is not set", file=sys.stderr)


def kept(path, make):
    """Return what a JSON file holds; if it is not there yet, make it first."""
    if not path.exists():
        begun = time.perf_counter()
        made = make()
        staged = path.with_suffix(".part")
        staged.write_text(json.dumps(made))
        staged.replace(path)
        print(f"{path.stem}: {time.perf_counter() - begun:.0f} s", file=sys.stderr, flush=True)
    return json.loads(path.read_text())


def released(people, contest, path):
    """Write and verify a release unless it is there; give its file and audit file."""
    audit = path.with_suffix(".audit.parquet")
    if not path.with_name(path.name + ".manifest.json").exists():
        contest.method.anonymize(people).write(path, audit=audit, overwrite=True)
    return path, audit


def attacked(people, contest, path, victims):
    """Play every attack on one release; give the outcomes by name."""
    release, audit = released(people, contest, path)
    target = open_target(people, release, audit=audit)
    return {name: play(target, name, victims=victims, **settings).to_dict() for name, settings in ATTACKS.items()}


def row_where(outcome, **wanted):
    return next(row for row in outcome["rows"] if all(row[name] == value for name, value in wanted.items()))


def won(row):
    """A share with its interval, in percent."""
    return f"{percent(row['success'])} ({row['success_low'] * 100:.1f}–{row['success_high'] * 100:.1f})"


def line(contest, outcomes):
    """Return one row of a data set's table."""
    points, window = row_where(outcomes["points"], points=4), row_where(outcomes["window"], tau_s=6 * 3600)
    places = row_where(outcomes["top-locations"], locations=3)
    home = row_where(outcomes["home-work"], known="home and work")
    owner, hidden = row_where(outcomes["owner"], adversary="learned"), outcomes["owner"]["figures"]
    covers = row_where(outcomes["intersect-covers"], records="merged")
    broken = [name for name, outcome in outcomes.items() if not outcome["ok"]]
    return {
        "k": str(contest.method.k),
        "method": NAMES.get(contest.name, contest.name),
        "points (4)": won(points),
        "candidates, least / median": f"{points['candidates_min']} / {points['candidates_median']:.0f}",
        "top 3": won(places),
        "home and work": won(home),
        "window (6 h)": won(window),
        "candidates, least": str(window["candidates_min"]),
        "learned beyond": percent(window["learned"]),
        "owner": won(owner),
        "effective k": f"{hidden['effective_k_mean']:.2f}",
        "cost left after intersecting": percent(covers["left"]),
        "claim": f"{outcomes['points']['figures']['claim']}: "
        + (f"BROKEN by {', '.join(broken)}" if broken else "kept"),
    }


def raw_line(outcomes):
    """Return the row of raw data: the controls of the same attacks."""
    control = {"success": "control", "success_low": "control_low", "success_high": "control_high"}
    rows = {
        "points (4)": row_where(outcomes["points"], points=4),
        "top 3": row_where(outcomes["top-locations"], locations=3),
        "home and work": row_where(outcomes["home-work"], known="home and work"),
        "window (6 h)": row_where(outcomes["window"], tau_s=6 * 3600),
        "owner": row_where(outcomes["owner"], adversary="learned"),
    }
    shown = {name: won({to: row[source] for to, source in control.items()}) for name, row in rows.items()}
    return {"k": "-", "method": "raw data", **shown, "learned beyond": percent(rows["window (6 h)"]["control_learned"])}


def markdown(rows):
    """Write rows as a Markdown table; columns are those of the last one."""
    columns = list(rows[-1])
    lines = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(row.get(name, "-") for name in columns) + " |" for row in rows]
    return "\n".join(lines)


def intersected(people, name, ks, folder, victims):
    """Return the table of two releases over the same people: shoal and k-scale's full, and shoal with two k."""
    rows = []
    for k in ks:
        pairs = [(("shoal", k), ("k-scale:full", k)), (("shoal", k), ("shoal", k + 1)), (("k-scale", k), ("shoal", k))]
        for pair in pairs:
            runs = [contests([method], [size])[0] for method, size in pair]
            titles = [f"{method.replace(':', '-')}-{size}" for method, size in pair]

            def make(runs=runs, titles=titles):
                targets = []
                for run, title in zip(runs, titles, strict=True):
                    release, audit = released(people, run, folder / f"{name}-{title}.parquet")
                    targets.append(open_target(people, release, audit=audit))
                return play(targets[0], "intersection", other=targets[1], victims=victims).to_dict()

            outcome = kept(folder / f"{name}-{'-and-'.join(titles)}-{victims}.json", make)
            row, figures = row_where(outcome, points=4), outcome["figures"]
            rows.append(
                {
                    "first": f"{runs[0].name}, k = {pair[0][1]}",
                    "second": f"{runs[1].name}, k = {pair[1][1]}",
                    "candidates": f"{row['candidates_median']:.0f} / {row['other_candidates_median']:.0f}",
                    "people in both, least / median": f"{row['together_min']} / {row['together_median']:.0f}",
                    "alone in both": won(row),
                    "seen by the adversary: left, median": f"{row['left_median']:.0f}",
                    "side": f"{figures['side_km_first']:.2f} → {figures['side_km_both']:.2f} km",
                    "duration": f"{figures['duration_min_first']:.0f} → {figures['duration_min_both']:.0f} min",
                }
            )
    return markdown(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="tdrive_cdr,gowalla_nyc,generated")
    parser.add_argument("--users", type=int, default=2_000, help="of each data set")
    parser.add_argument("--k", default="2,5,10")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--victims", type=int, default=1_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "shoal-attack-table")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    arguments.folder.mkdir(mode=0o700, parents=True, exist_ok=True)  # the audit files are private
    ks = [int(k) for k in arguments.k.split(",")]
    parts = []
    for name, people in sources(arguments, arguments.folder):
        tag = f"{name}-{len(people)}"
        rows, raw = [], None
        for contest in contests(arguments.methods.split(","), ks):
            title = f"{tag}-{contest.name.replace(':', '-')}-{contest.method.k}"
            path = arguments.folder / f"{title}.parquet"

            def make(contest=contest, path=path, people=people):
                return attacked(people, contest, path, arguments.victims)

            outcomes = kept(arguments.folder / f"{title}-{arguments.victims}.json", make)
            raw = raw or raw_line(outcomes)
            rows.append(line(contest, outcomes))
        parts.append(f"### {name}: {len(people):,} people\n\n{markdown([raw, *rows])}")
        both = intersected(people, tag, ks, arguments.folder, arguments.victims)
        parts.append(f"Two releases over the same people, 4 points known:\n\n{both}")
    text = "\n\n".join(parts) + "\n"
    if arguments.output is not None:
        arguments.output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
