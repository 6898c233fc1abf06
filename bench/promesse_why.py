"""Why figures of docs/papers/promesse.md differ from the paper's: three small experiments, as Markdown.

    SHOAL_DATA=… python bench/promesse_why.py [--step 200]

Stays: what the adversary takes for a stay in what Promesse publishes, and generated people over one day and a week.
Sampling: the same polylines (`geolife_60s`; some taxis of `tdrive`) with every second or fourth fix only, as they are,
and with fixes put in between, so that none is missing for longer than 30 seconds. Splitting: shorter traces of taxis.
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

import shoal
from shoal.attacks.poi import poi_scores, stays_of
from shoal.kernels.geodesy import places
from shoal.lists import offsets_of
from shoal.seen.pairs import open_pairs
from shoal.utility import evaluate_pairs

NOISE = ("ln(10)/100", "ln(2)/200")


def taxis(folder, every, gap="4h"):
    """Return the traces of some of the taxis."""
    table = pq.read_table(folder / "tdrive.parquet")
    some = table.filter(pc.equal(pc.bit_wise_and(table["uid"], every - 1), 3))
    return shoal.read_traces(some, tz="Asia/Shanghai", split_gap=gap)


def thinned(traces, every):
    """Return every so-manieth fix of each trace, from its first on."""
    rank = np.arange(traces.fixes) - np.repeat(traces.offsets[:-1], traces.counts)
    rows = np.flatnonzero(rank % every == 0)
    offsets = np.searchsorted(rows, traces.offsets)
    return replace(traces, offsets=offsets, ms=traces.ms[rows], lng=traces.lng[rows], lat=traces.lat[rows])


def filled(traces, seconds):
    """Put fixes on the way from each fix to the next, evenly, so that none is missing for longer than `seconds`."""
    trace = np.repeat(np.arange(len(traces)), traces.counts)
    gap = np.diff(traces.ms, append=traces.ms[-1:])
    parts = np.where(np.diff(trace, append=-1) == 0, np.maximum(-(-gap // (1000 * seconds)), 1), 1)
    row = np.repeat(np.arange(traces.fixes), parts)
    share = (np.arange(len(row)) - np.repeat(offsets_of(parts)[:-1], parts)) / parts[row]
    after = np.minimum(row + 1, traces.fixes - 1)
    columns = [c[row] + (c[after] - c[row]) * share for c in (traces.ms, traces.lng, traces.lat)]
    offsets = offsets_of(parts)[traces.offsets]
    return replace(traces, offsets=offsets, ms=np.rint(columns[0]).astype(np.int64), lng=columns[1], lat=columns[2])


def figures(traces, method):
    """Return F-score, spatial error and query distortion of a method."""
    pairs = open_pairs(traces, method.anonymize(traces))
    found = evaluate_pairs(pairs)
    return poi_scores(pairs).means()["fscore"], found.spatial_error_m, found.query_distortion


def sampling(name, step_m, ways):
    """Print what the density of fixes does to the figures."""
    for way, sampled in ways.items():
        smooth = figures(sampled, shoal.Promesse(step=step_m))
        weak, strong = (figures(sampled, shoal.GeoIndistinguishability(epsilon=e)) for e in NOISE)
        cells = f"{smooth[0]:.2%}", f"{smooth[1]:.1f} m", f"{smooth[2]:.1%}", f"{weak[0]:.1%}", f"{strong[2]:.1%}"
        print(f"| {name}, {way} | {sampled.fixes:,} | {' | '.join(cells)} |", flush=True)


def splitting(folder, step_m):
    """Print what the duration of traces does to range queries, asked of the fixes and of those with some in between."""
    for gap in ("4h", "1h", "20min"):
        some = taxis(folder, 64, gap)
        hours = (some.ms[some.offsets[1:] - 1] - some.ms[some.offsets[:-1]]) / 3_600_000
        found = (figures(sampled, shoal.Promesse(step=step_m))[2] for sampled in (some, filled(some, 30)))
        cells = f"{len(some):,}", f"{np.average(hours, weights=some.counts):.1f} h", *(f"{one:.1%}" for one in found)
        print(f"| {gap} | {' | '.join(cells)} |", flush=True)


def stays(name, traces, step_m):
    """Print what the stays found in what is published are made of, and the score for slightly smaller places."""
    release = shoal.Promesse(step=step_m).anonymize(traces)
    pairs = open_pairs(traces, release)
    track = pairs.published
    x, y, z = (np.empty(len(track.ms)) for _ in range(3))
    places(track.lng, track.lat, x, y, z)
    counts, starts, stops = stays_of(track.offsets, track.ms, x, y, z, diameter_m=200, stay_s=900)
    sizes = np.diff(track.offsets)
    spent = track.ms[track.offsets[1:] - 1] - track.ms[track.offsets[:-1]]
    slow = (spent >= 900_000 * np.maximum(sizes - 1, 1)) & (sizes > 1)
    whole, smaller = (poi_scores(pairs, diameter_m=d).means()["fscore"] for d in (200, 195))
    pair = float((stops - starts == 2).mean()) if len(starts) else 0.0
    in_slow = counts[slow].sum() / max(counts.sum(), 1)
    cells = f"{slow.mean():.1%}", f"{len(starts):,}", f"{in_slow:.1%}", f"{pair:.1%}", f"{whole:.2%}", f"{smaller:.2%}"
    print(f"| {name} | {len(track):,} | {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--step", type=int, default=200)
    step_m = parser.parse_args().step
    folder = Path(os.environ["SHOAL_DATA"])
    geolife = shoal.read_traces(folder / "geolife_60s.parquet", split_gap="4h", align_days=20)
    print("| | records | quarter of an hour a step | stays found | in such records | of two points | F-score | 195 m |")
    print("|---|---|---|---|---|---|---|---|")
    stays("GeoLife", geolife, step_m)
    for days in (1, 7):
        people = shoal.synthesize(users=200, kind="gps", days=days, seed=1)
        stays(f"generated, {days} d", shoal.read_traces(people, split_gap="4h"), step_m)
    stays("every 16th taxi", taxis(folder, 16), step_m)
    print("\n| | fixes | Promesse: F-score | error | queries | Geo-I ln(10)/100: F-score | ln(2)/200: queries |")
    print("|---|---|---|---|---|---|---|")
    fewer = {f"every {n}.": thinned(geolife, n) for n in (4, 2)}
    sampling("GeoLife", step_m, fewer | {"all": geolife, "one in 30 s": filled(geolife, 30)})
    some = taxis(folder, 64)
    sampling("every 64th taxi", step_m, {"all": some, "one in 30 s": filled(some, 30)})
    print("\n| split at gaps of | traces | they last | range queries | one fix in 30 s |\n|---|---|---|---|---|")
    splitting(folder, step_m)


if __name__ == "__main__":
    main()
