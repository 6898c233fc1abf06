"""No false alarm: honest releases of every method, in every form, hold with and without the audit."""

import random
from collections import Counter

import pytest

import shoal
from shoal.errors import CannotCheck, SettingsError

RUNS = 500


def kscale(draw, k):
    constraint = draw.choice(["nu-k-pick", "k-pick", "full"])
    more = {"picking": "marginal"} if constraint == "nu-k-pick" and draw.random() < 0.3 else {}
    return shoal.KScale(k=k, constraint=constraint, **more)


def glove(draw, k):
    limits = {"max_span": "15km", "max_duration": "12h"} if draw.random() < 0.3 else {}
    words = {"merge": draw.choice(["k-merge", "two-stage"]), "variant": draw.choice(["strict", "loose"])}
    return shoal.Glove(k=k, **words, **limits)


METHODS = {
    "shoal": lambda draw, k: shoal.Shoal(k=k, **({"max_span": "15km"} if draw.random() < 0.3 else {})),
    "k-concealment": lambda draw, k: shoal.KConcealment(k=k),
    "k-scale": kscale,
    "glove": glove,
    "kte-hide": lambda draw, k: shoal.KteHide(k=2, tau="1d", epsilon=draw.choice(["12h", "1d"])),
    "uniform": lambda draw, k: shoal.Uniform(to_cell=draw.choice(["500m", "2km"]), to_slot=draw.choice([None, "1h"])),
    "promesse": lambda draw, k: shoal.Promesse(step=draw.choice(["20m", "100m", "350m"])),
    "geo-indistinguishability": lambda draw, k: shoal.GeoIndistinguishability(epsilon=draw.choice([0.002, 0.02, 0.2])),
}


def honest(number, folder):
    """Publish a release with settings drawn by number, and verify it; return its method, and how it was judged."""
    draw = random.Random(number)
    name = [*METHODS][number % len(METHODS)]
    k = draw.choice([2, 2, 3, 5])
    method = METHODS[name](draw, k)
    points = name in ("promesse", "geo-indistinguishability")
    made = {"users": draw.randrange(20, 70), "days": draw.choice([1, 2, 4]), "seed": number, "scene": "town"}
    source, target, audit = folder / "in.parquet", folder / draw.choice(["r.parquet", "r.csv"]), folder / "a.parquet"
    shoal.synthesize(source, kind="gps" if points else "cdr", **made)
    how = {"geo": target.suffix == ".parquet" and draw.random() < 0.3}
    how["compact"] = method.claim.name == "k-anonymity" and draw.random() < 0.3
    how["seed"] = number if draw.random() < 0.2 else None
    reading = {"split_gap": "2h"} if points and draw.random() < 0.5 else {}
    if draw.random() < 0.3 and not points:
        reading = {"cell": draw.choice(["200m", "500m"]), "slot": draw.choice(["5min", "30min"])}
    if name == "kte-hide":
        reading = {"slot": "30min"}
    try:
        done = shoal.publish(source, target, method, audit=audit, **how, **reading)
    except SettingsError:  # too much would be left out
        return name, "refused"
    assert done.verdict.ok
    told = Counter()
    for shown in (audit, None):
        try:
            verdict = shoal.verify(source, target, audit=shown)
        except CannotCheck:
            told["cannot"] += 1
            continue
        assert verdict.ok, (number, name, verdict.codes, shown is None)
        told[verdict.result.partition(",")[0]] += 1
        assert shoal.read_release(target).claim == verdict.claim
    assert told["cannot"] <= 1
    return name, "held" if not told["cannot"] else "held, with the audit only"


@pytest.mark.parametrize("number", [*range(24), 142])  # 142: a fix 8 mm short of a step
def test_an_honest_release_holds(number, tmp_path):
    honest(number, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(24, RUNS, 34))
def test_many_honest_releases_hold(first, tmp_path):
    told = Counter()
    for number in range(first, min(first + 34, RUNS)):
        folder = tmp_path / str(number)
        folder.mkdir()
        told[honest(number, folder)] += 1
    refused = sum(times for (_, end), times in told.items() if end == "refused")
    assert refused <= sum(told.values()) // 4, told  # most runs publish something that is verified
