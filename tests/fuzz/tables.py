"""Tables of events as people have them: the cells, the names of columns, and how they are read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import shoal
from tests.fuzz.case import CANARY, CLOCK, LAT, LNG, Broken, Case, run_in
from tests.fuzz.mutate import EDGES, FLOATS, TEXTS

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

NAMES = {
    "user": ("uid", "user", "user_id", "UID", "msisdn", "device_id", "id", "name", "who", "Utilisateur", "имя"),
    "time": ("datetime", "time", "timestamp", "start_time", "Zeit", "t", "when", "epoch", "ts_ms", "DATE_TIME"),
    "lat": ("lat", "latitude", "Lat", "y", "LAT ", "breite", "start_lat"),
    "lng": ("lng", "lon", "longitude", "Long", "x", "länge", "start_lng"),
    "note": ("note", "speed", "alt", "", "uid", "lat", "time", "id", "date", "cell", "geometry", "h3", "accuracy"),
}
TIMES = (
    *(f"2026-03-01T{CLOCK}Z", f"2026-03-01 {CLOCK}", f"2026-03-01T{CLOCK}.123456+02:00", f"2026-03-02 {CLOCK} -0330"),
    *(f"01.03.2026 {CLOCK}", f"3/1/2026 {CLOCK} AM", f"13/3/2026 {CLOCK}", f"2026年3月1日 {CLOCK}", "20260301"),
    *(
        "20260301T073137Z",
        "1772352000",
        "1772352000.5",
        "1772352000123",
        "1772352000123456",
        "46082.3136",
        "2026-03-01",
    ),
    *("07:31", "24:00:00", "1969-12-31 23:59:59", "2100-01-01", "0000-00-00", "9999-12-31T23:59:59Z", "2026-02-30"),
    *("2026-03-29 02:30", "-1", "2026-03-01T07:31:60Z", "2026-03-01T07:31:37+99:99", "2026-03-01T07:31:37-99"),
    *("Sun Mar  1 07:31:37 2026", "1e9"),
)
DEGREES = (
    *("39,731973", "39°43'55\"N", "116.4 W", "39.73N", "91", "-181", "180", "-180", "90", "0", "-0", "−39.7", "1e2"),
    *(
        "nan",
        "inf",
        "-Infinity",
        "1e999",
        "0x1p5",
        "39.731973.1",
        "+39.7",
        " 39.7 ",
        ".5",
        "5.",
        "1_0",
        "٣٩",
        "39 43 55",
    ),
)
_OPTIONS: dict[str, tuple[Any, ...]] = {
    "tz": ("Africa/Dakar", "America/New_York", "+05:45", "-12:00"),
    "time_unit": ("s", "ms", "us", "excel"),
    "time_format": ("dmy", "mdy", "ymd", "%d.%m.%Y %H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"),
    "encoding": ("utf-8", "cp1252", "utf-16", "latin-1", "shift_jis"),
    "crs": ("EPSG:32650", "EPSG:3857"),
    "cell": (1, 500, "10km", 2_000_000_000),
    "slot": (1, "1h", 2_000_000_000),
    "min_samples": (2, 100),
    "min_active_days": (1, 30),
    "bbox": ([-180, -90, 180, 90], [116, 39, 117, 40], [170, -80, -170, 80]),
    "period": (["2026-03-01", "2026-03-02"], ["1970-01-01", "2100-01-01"]),
    "strict": (True,),
    "confirm": (["one-sample", "swapped", "zero-zero"],),
    "columns": (
        *(
            "user=uid,time=datetime",
            "user=1,time=2,lat=3,lng=4",
            "user=1",
            "user=@file",
            "user=@folder",
            "time=datetime",
        ),
        *("x=lng,y=lat", "geometry=note", "h3=note", "user=note", "user=uid,lat=lat"),
    ),
    "_traces": (True,),
    "align_days": (2,),
    "split_gap": ("1h",),
}


def options(draw: Random) -> dict[str, Any]:
    """Return none of the reading options, or a few."""
    chosen = draw.sample(list(_OPTIONS), draw.choice((0, 0, 0, 0, 1, 1, 2)))
    picked = {name: draw.choice(_OPTIONS[name]) for name in chosen}
    return {**picked, "_traces": True} if {"align_days", "split_gap"} & set(picked) else picked


def user(draw: Random) -> str:
    what = draw.randrange(12)
    if what < 9:
        return f"{CANARY}-{draw.randrange(5)}"
    return (
        draw.choice(TEXTS)
        if what == 9
        else str(draw.choice(EDGES[:-1]))
        if what == 10
        else "x" * draw.choice((300, 70_000))
    )


def moment(draw: Random) -> str:
    if draw.random() < 0.8:
        return f"2026-03-0{draw.randint(1, 5)}T{CLOCK}Z"
    return draw.choice((*TIMES, draw.choice(TEXTS), str(draw.choice(EDGES[:-1])), str(draw.choice(FLOATS))))


def degrees(draw: Random, usual: str) -> str:
    if draw.random() < 0.8:
        return draw.choice((usual, usual, usual, f"{float(usual) + draw.random():.6f}", f"{float(usual):.2f}"))
    return draw.choice((*DEGREES, draw.choice(TEXTS), str(draw.choice(EDGES[:-1])), str(draw.choice(FLOATS))))


def row(draw: Random) -> dict[str, str]:
    """Return the cells of one event, mostly sound."""
    if draw.random() < 0.03:
        return {role: "".join(map(chr, draw.choices(range(1, 0xD7FF), k=draw.randrange(12)))) for role in NAMES}
    note = draw.choice(("x", "", CANARY, f"POINT({LNG} {LAT})", "8931aa5a127ffff", "wx4g0ec1", *TEXTS))
    return {
        "user": user(draw),
        "time": moment(draw),
        "lat": degrees(draw, LAT),
        "lng": degrees(draw, LNG),
        "note": note,
    }


def header(draw: Random) -> list[tuple[str, str]]:
    """Return the columns in their order, as pairs of what is in them and their name; sometimes one fewer or twice."""
    roles = ["user", "time", "lat", "lng", *["note"] * draw.choice((0, 1, 1, 2))]
    usual = draw.random() < 0.9
    columns = [(role, NAMES[role][0 if usual else draw.randrange(len(NAMES[role]))]) for role in roles]
    if draw.random() < 0.04:
        columns.pop(draw.randrange(len(columns)))
    if draw.random() < 0.04:
        columns.append(draw.choice(columns))
    if draw.random() < 0.05:
        columns[draw.randrange(len(columns))] = ("note", draw.choice(TEXTS).replace(CANARY, "x"))
    if draw.random() < 0.2:
        draw.shuffle(columns)
    return columns


def read(source: Any, options: dict[str, Any], folder: Path) -> str:
    """Read a source as people or as traces; return its account, which must add up."""
    given = {name: value for name, value in options.items() if not name.startswith("_")}
    if options.get("_traces"):
        people: Any = shoal.read_traces(source, run=run_in(folder), **given)
    else:
        people = shoal.read(source, run=run_in(folder), **given)
    account = people.account
    kept = account.rows_read - sum(account.dropped.values())
    if account.kept_rows != kept or (not options.get("_traces") and people.samples != kept):
        raise Broken("wrong", f"{account.rows_read} rows, {account.kept_rows} kept, {account.dropped}")
    if not len(people):
        raise Broken("wrong", "nobody was read, and nothing was said")
    return json.dumps([account.dropped, account.notes], default=str, ensure_ascii=False)


def read_case(case: Case, folder: Path) -> str:
    """Read the first file of a case."""
    return read(folder / case.first, case.options, folder)
