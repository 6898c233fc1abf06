"""GLOVE's accuracy, as GLOVE looks at it: the tables of docs/papers/glove.md, as Markdown.

    SHOAL_DATA=… python bench/glove_table.py [--users 2000] [--data generated,tdrive_cdr,gowalla_nyc] [--k 2,3,5]
        [--samples 252] [--parts accuracy,suppression,span,city,crowd,frequency,partner]

Everybody's samples count, each with the box that holds it: its span (Δx + Δy)/2 and its duration. `accuracy` is Fig. 11
and 13, `suppression` Fig. 14, `span` to `frequency` Fig. 16 to 19, `partner` Fig. 20. All but the first are for k = 2
and k-merge.
"""

import argparse
import os
from itertools import pairwise
from pathlib import Path

import numpy as np

import shoal
from shoal.lists import take_lists
from shoal.measure import correlations, properties
from shoal.measure.precision import samples_in_boxes
from shoal.methods.glove import Glove
from shoal.trajectories import Trajectories, build

SOURCES = {
    "tdrive_cdr": {"tz": "Asia/Shanghai"},
    "gowalla_nyc": {"tz": "America/New_York", "min_samples": 14},
}
CITY_KM = 10  # to each side of the most frequent cell
PROPERTIES = ("gyration_km", "neighbours", "travelled_km", "irregularity_min", "samples_per_hour")


class Seen:
    """Every box of a release with how many of its owner's samples it holds."""

    def __init__(self, people, *, k=2, **settings):
        self.people = people
        self.release = Glove(k=k, **settings).anonymize(people)
        t0, t1, x0, x1, y0, y1 = self.release.boxes.astype(np.int64).T
        cell_km, slot_min = people.frame.cell_m / 1000, people.frame.slot_s / 60
        self.held = samples_in_boxes(self.release)[0]
        self.span = (x1 - x0 + y1 - y0 + 2) / 2 * cell_km
        self.side = np.maximum(x1 - x0 + 1, y1 - y0 + 1) * cell_km
        self.minutes = (t1 - t0 + 1) * slot_min

    def share(self, kept):
        return f"{self.held[kept].sum() / self.held.sum():.0%}"

    def middle(self, kept=None):
        """Mean and median of spans and durations over samples."""
        held = self.held if kept is None else self.held * kept
        span, minutes = (np.repeat(values, held) for values in (self.span, self.minutes))
        return [
            f"{span.mean():.2f} km",
            f"{np.median(span):.2f} km",
            f"{minutes.mean():.0f} min",
            f"{np.median(minutes):.0f} min",
        ]


MIDDLE = ["span, mean", "median", "duration, mean", "median"]


def some(people, chosen):
    offsets, rows = take_lists(people.offsets, np.sort(chosen))
    columns = (people.t[rows], people.x[rows], people.y[rows])
    return Trajectories(offsets, *columns, people.frame, people.labels.take(np.sort(chosen)))


def within(people, kept, least=1):
    """Return those of the samples, of people who keep at least so many."""
    owner = np.repeat(np.arange(len(people)), people.counts)
    kept &= np.bincount(owner[kept], minlength=len(people))[owner] >= least
    columns = (column[kept] for column in (owner, people.t, people.x, people.y))
    return build(*columns, labels=people.labels, frame=people.frame)


def people_of(name, users, samples):
    if name == "generated":
        return shoal.from_arrow(shoal.synthesize(users=users, samples=samples, seed=1))
    people = shoal.read(Path(os.environ["SHOAL_DATA"]) / f"{name}.parquet", **SOURCES[name])
    return some(people, np.random.default_rng(1).permutation(len(people))[:users])


def show(part, name, header, row):
    """Print a row as soon as it is known; the header before the first of a part."""
    if part not in show.begun:
        show.begun.add(part)
        print(f"\n{part}\n\n| data | " + " | ".join(header) + " |\n" + "|---" * (len(header) + 1) + "|")
    print(f"| {name} | " + " | ".join(map(str, row)) + " |", flush=True)


show.begun = set()


def accuracy(name, people, ks):
    header = ["k", "merge", "span ≤ 100 m", "≤ 2 km", "duration ≤ 30 min", "≤ 2 h", *MIDDLE, "left out"]
    for k in ks:
        for merge in ("two-stage", "k-merge"):
            of = Seen(people, k=k, merge=merge)
            shares = [of.span <= 0.1, of.span <= 2, of.minutes <= 30, of.minutes <= 120]
            left = f"{of.release.suppressed / people.samples:.2%}"
            show("accuracy", name, header, [k, merge, *map(of.share, shares), *of.middle(), left])


def suppression(name, of):
    header = ["side up to", "duration up to", "samples left out", *MIDDLE]
    for side_km, hours in ((None, None), (None, 6), (20, 6), (15, 6), (10, 4), (5, 2)):
        kept = of.side <= (side_km or np.inf)
        kept &= of.minutes <= (hours or np.inf) * 60
        row = [f"{side_km} km" if side_km else "any", f"{hours} h" if hours else "any"]
        show("suppression", name, header, [*row, f"{1 - of.held[kept].sum() / of.held.sum():.1%}", *of.middle(kept)])


def span(name, people):
    day = 86_400 // people.frame.slot_s
    whole = -(-(int(people.t.max()) - int(people.t.min()) + 1) // day)
    for days in sorted({1, 2, 7, whole}):
        if days <= whole:
            part = within(people, people.t < int(people.t.min()) + days * day)
            show("span", name, ["days", "people", *MIDDLE], [days, f"{len(part):,}", *Seen(part).middle()])


def city(name, people):
    (x, y), count = np.unique(np.stack([people.x, people.y]), axis=1, return_counts=True)
    middle = int(np.argmax(count))
    reach = CITY_KM * 1000 // people.frame.cell_m
    inside = (abs(people.x - x[middle]) <= reach) & (abs(people.y - y[middle]) <= reach)
    part = within(people, inside, least=14)
    nation = some(people, np.random.default_rng(2).permutation(len(people))[: len(part)])
    for where, them in (("one city", part), ("as many people anywhere", nation), ("everywhere", people)):
        show("city", name, ["where", "people", *MIDDLE], [where, f"{len(them):,}", *Seen(them).middle()])


def crowd(name, people):
    for share in (0.05, 0.1, 0.25, 0.5, 1.0):
        part = some(people, np.random.default_rng(2).permutation(len(people))[: int(share * len(people))])
        show("crowd", name, ["people", *MIDDLE], [f"{len(part):,}", *Seen(part).middle()])


def frequency(name, of):
    each = properties(of.people).samples_per_hour
    owner = np.repeat(of.release.members.owners, np.diff(of.release.offsets))
    edges = np.quantile(each, [0, 0.25, 0.5, 0.75, 1])
    for low, high in pairwise(edges.tolist()):
        kept = (each[owner] >= low) & (each[owner] <= high)
        show("frequency", name, ["samples an hour", *MIDDLE], [f"{low:.2f} to {high:.2f}", *of.middle(kept)])


def partner(name, of):
    """Correlate what people are like with the effort of the pair that GLOVE made of them."""
    members = of.release.members
    pairs = members.indices.reshape(-1, 2)
    one, other = pairs.min(axis=1), pairs.max(axis=1)
    users = [of.people.user(user) for user in range(len(of.people))]
    efforts = [shoal.stretch_effort(users[a], users[b]) for a, b in zip(one, other, strict=True)]
    found = correlations(properties(of.people, members.owners), efforts)
    show("partner", name, [*PROPERTIES], [f"{found[which]['pearson']:.2f}" for which in PROPERTIES])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=2000)
    parser.add_argument("--data", default="generated,tdrive_cdr,gowalla_nyc")
    parser.add_argument("--k", default="2,3,5")
    parser.add_argument("--samples", type=float, default=252.0, help="of a generated person, on average")
    parser.add_argument("--parts", default="accuracy,suppression,span,city,crowd,frequency,partner")
    arguments = parser.parse_args()
    parts, ks = arguments.parts.split(","), [int(k) for k in arguments.k.split(",")]
    data = {name: people_of(name, arguments.users, arguments.samples) for name in arguments.data.split(",")}
    if "accuracy" in parts:
        for name, people in data.items():
            accuracy(name, people, ks)
    of_release = {"suppression": suppression, "frequency": frequency, "partner": partner}
    if set(of_release) & set(parts):
        made = {name: Seen(people) for name, people in data.items()}
    for part in parts:
        for name, people in data.items():
            if part in of_release:
                of_release[part](name, made[name])
            elif part != "accuracy":
                {"span": span, "city": city, "crowd": crowd}[part](name, people)


if __name__ == "__main__":
    main()
