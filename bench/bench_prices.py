"""What a price saves: how precise releases of `shoal` are by each price and worth, beside k-scale and GLOVE.

    python bench/bench_prices.py [--users 1000] [--k 2,5,10] [--worth 0.5,1,2]

Sides and durations are those of the boxes that people's samples are in. Worths are multiples of the usual one, which is
what `shoal` takes if `--worth` is not given. Generated call records; with SHOAL_DATA set also so many users of
tdrive_cdr and gowalla_nyc (at least 14 samples).
"""

import argparse
import os
import tempfile
from pathlib import Path

import shoal
from _bench import report, some_users
from shoal.measure.precision import precision
from shoal.search.prices import usual_worth

SOURCES = {"tdrive_cdr": {"tz": "Asia/Shanghai"}, "gowalla_nyc": {"tz": "America/New_York", "min_samples": 14}}


def sources(users):
    """Return the people of each data set."""
    yield f"generated {users:,}", shoal.from_arrow(shoal.synthesize(users=users, seed=1))
    for name, options in SOURCES.items() if "SHOAL_DATA" in os.environ else ():
        with tempfile.TemporaryDirectory() as folder:
            some = Path(folder, "some.parquet")
            some_users(Path(os.environ["SHOAL_DATA"]) / f"{name}.parquet", some, users, rows=14)
            people = shoal.read(some, **options)
        yield f"{name} {len(people):,}", people


def methods(people, k, multiples):
    """Return the methods to compare, by the name in the table."""
    cells, slots = usual_worth(people, k)
    metres, seconds = cells * people.frame.cell_m, slots * people.frame.slot_s
    found = {"k-scale": shoal.KScale(k=k), "glove": shoal.Glove(k=k), "product": shoal.Shoal(k=k)}
    for price in ("sum", "roots"):
        for many in multiples:
            worth = round(metres), max(1, round(many * seconds))
            name = f"{price}, 1 km = {worth[1] / 60 / (worth[0] / 1000):,.0f} min"
            found[name] = shoal.Shoal(k=k, price=price, worth=worth)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--k", default="2,5,10")
    parser.add_argument("--worth", default="0.5,1,2")
    asked = parser.parse_args()
    multiples, rows = [float(many) for many in asked.worth.split(",")], []
    for data, people in sources(asked.users):
        for k in map(int, asked.k.split(",")):
            for name, method in methods(people, k, multiples).items():
                got = precision(method.anonymize(people))
                rows.append(
                    {
                        "data": data,
                        "k": k,
                        "price": name,
                        "side, mean": f"{got.span_km_mean:.2f} km",
                        "median": f"{got.span_km_median:.2f} km",
                        "duration, mean": f"{got.duration_min_mean:,.0f} min",
                        "median ": f"{got.duration_min_median:,.0f} min",
                        "owner cost": f"{got.owner_cost:,.0f}",
                    }
                )
    report("prices", rows)


if __name__ == "__main__":
    main()
