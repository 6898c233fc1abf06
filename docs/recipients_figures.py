"""Measure how far off the figures of recipients.md are, and print its table: python docs/recipients_figures.py.

The code blocks of the page are run on releases of generated people; the same functions are run on the original.
"""

import contextlib
import io
import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import shoal

PAGE = Path(__file__).parent / "recipients.md"
USERS, SEED, KS = 2000, 1, (2, 5, 10)


def functions():
    """Return the names that the page's Python blocks define, run on the release in the current folder."""
    names = {}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for block in blocks:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(block, "recipients.md", "exec"), names)
    return names


def original(people):
    """Return the samples as boxes of one granule, with the columns of a release; `uid` is the place in `labels`."""
    frame = people.frame
    start = pd.to_datetime(frame.epoch_s(people.t), unit="s", utc=True)
    columns = {"uid": np.repeat(np.arange(len(people)), people.counts), "t_start": start}
    columns["t_end"] = start + pd.Timedelta(seconds=frame.slot_s)
    for axis, cells in [("x", people.x), ("y", people.y)]:
        columns |= {f"{axis}_min": cells * frame.cell_m, f"{axis}_max": (cells + 1) * frame.cell_m}
    return pd.DataFrame(columns).assign(count=1)


def overlap(a, b):
    """Return how much two distributions have in common, from 0 to 1."""
    if isinstance(a, pd.Series):
        a, b = a.align(b, fill_value=0)
    return float(np.minimum(a / a.sum(), b / b.sum()).sum())


def zones(places, records, side):
    """Return the number of people by zone of their place."""
    counted = (places // side).astype(int)
    return counted.assign(people=records.groupby("uid")["count"].first()).groupby(["x", "y"])["people"].sum()


def by_time_of_day(page, records, raw, side):
    """Return the visits by quarter of the day and square, on a grid that holds the original and the release."""
    both = [records, raw]
    squares = [
        page["edges"](min(r[f"{a}_min"].min() for r in both), max(r[f"{a}_max"].max() for r in both), side)
        for a in "xy"
    ]
    ends = [f(page["hours"](r[c])) for r in both for c, f in (("t_start", np.min), ("t_end", np.max))]
    quarters = page["edges"](min(ends) // 24 * 24, np.ceil(max(ends) / 24) * 24, 6)
    found = []
    for some in both:
        grid = page["density"](some, quarters, *squares)
        found.append(grid.reshape(-1, 4, *grid.shape[1:]).sum(axis=0))
    return found


def home_errors(page, boxes, raw, audit, people):
    """Return the distance, in metres, from the home in a person's record to the home in their own samples."""
    own = pd.read_parquet(audit).drop_duplicates(["record", "owner"]).set_index("record")["owner"]
    index = {str(label): i for i, label in enumerate(people.labels.to_pylist())}
    true, seen = page["home"](raw), page["home"](boxes.assign(count=1))
    pair = seen.join(own.map(index).rename("person")).join(true.add_suffix("_true"), on="person", how="inner")
    return np.hypot(pair["x"] - pair["x_true"], pair["y"] - pair["y_true"])


def column(k, people, raw):
    """Return the figures of one release, by the names of the table's rows."""
    shoal.publish("events.parquet", "release.parquet", shoal.Shoal(k=k), audit="audit.parquet", overwrite=True)
    page = functions()
    boxes, records = page["boxes"], page["records"]
    page["people"] = records.groupby("uid")["count"].first()
    size = (boxes[["x_max", "y_max"]].to_numpy() - boxes[["x_min", "y_min"]].to_numpy()).mean(axis=1)
    lasts = (boxes["t_end"] - boxes["t_start"]).dt.total_seconds()
    rows = {
        "side of a box, median": f"{np.median(size) / 1000:.1f} km",
        "duration of a box, median": f"{lasts.median() / 3600:.1f} h",
    }
    for side in (10_000, 25_000):
        seen, true = by_time_of_day(page, records, raw, side)
        rows[f"where people are, {side // 1000} km and 6 h of the day: overlap"] = f"{overlap(seen, true):.2f}"
    for side in (5_000, 20_000):
        mine, theirs = (zones(page["home"](some), some, side) for some in (records, raw))
        rows[f"homes by zone of {side // 1000} km: overlap"] = f"{overlap(mine, theirs):.2f}"
    off = home_errors(page, boxes, raw, "audit.parquet", people) / 1000
    rows["home, distance: median / 90 %"] = f"{off.median():.1f} / {off.quantile(0.9):.1f} km"
    for side in (20_000, 50_000):
        rows[f"flows between zones of {side // 1000} km: overlap"] = (
            f"{overlap(page['flows'](records, side), page['flows'](raw, side)):.2f}"
        )
    rows |= radii(page["radius_of_gyration"](records).repeat(page["people"]))
    return rows


def radii(metres):
    """Return the rows about radii of gyration."""
    return {
        f"radius of gyration, {name}": f"{value / 1000:.1f} km"
        for name, value in [("median", metres.median()), ("mean", metres.mean()), ("90 %", metres.quantile(0.9))]
    }


def main():
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        shoal.synthesize("events.parquet", users=USERS, seed=SEED)
        people = shoal.read("events.parquet")
        raw = original(people)
        columns = {f"k = {k}": column(k, people, raw) for k in KS}
        page = functions()
        page["people"] = raw.groupby("uid")["count"].first()
        columns = {"original": radii(page["radius_of_gyration"](raw))} | columns
        table = pd.DataFrame({name: pd.Series(rows) for name, rows in columns.items()})
        table = table.reindex(columns[f"k = {KS[0]}"]).fillna("")
        sys.stdout.write(f"| | {' | '.join(table.columns)} |\n|---|{'---|' * len(table.columns)}\n")
        for name, *cells in table.itertuples():
            sys.stdout.write(f"| {name} | {' | '.join(cells)} |\n")
        os.chdir("/")


if __name__ == "__main__":
    main()
