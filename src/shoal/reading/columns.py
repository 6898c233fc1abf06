"""Columns: which column holds the user, the time and the place."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

from shoal.errors import ColumnsNotFound
from shoal.reading.names import CLOCKS, DATES, LATITUDES, LONGITUDES, TIMES, is_trip, plain_name, user_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "FROM_PATH",
    "Columns",
    "find_cell_columns",
    "find_columns",
    "keys_of",
    "looks_like_data",
    "means",
    "number_of",
    "numbered",
    "printable",
    "told_names",
]

# Names people use, best first: the first tier with a match wins, two matches in one tier are ambiguous.
# Those of users are in `names.py`. Case, accents, spaces and signs do not matter.
_TIERS: dict[str, tuple[frozenset[str], ...]] = {
    "time": (
        frozenset({"datetime", "timestamp", "time", "time(ms)", "time(s)", "start_time", "date_time"}) | TIMES,
        frozenset(
            {"event_time", "call_datetime", "ts", "epoch", "epoch_ms", "epoch_s", "time_ms", "time_s", "unix_time"}
            | {"unixtime", "timestamp_ms", "timestamp_s", "timestamp_utc", "time_utc", "utc_time", "datetime_utc"}
            | {
                "check_in_time",
                "checkin_time",
                "gps_time",
                "gpstime",
                "device_time",
                "fix_time",
                "local_datetime",
                "recorded_at",
                "created_at",
                "tst",
            }
            | {"timestamp(ms)", "timestamp(s)", "event_timestamp", "base_date_time", "date_time_utc", "event_datetime"}
        ),
        DATES,
        CLOCKS,
    ),
    "date": (DATES,),
    "clock": (
        frozenset({"time"}),
        CLOCKS,
        frozenset({"zeit", "время", "الوقت", "时间", "時間", "時刻", "시간", "시각", "zaman"}),
    ),
    "lat": (frozenset({"lat", "latitude"}) | LATITUDES,),
    "lng": (frozenset({"lng", "lon", "long", "longitude"}) | LONGITUDES,),
    "x": (frozenset({"x"}), frozenset({"easting", "east"})),
    "y": (frozenset({"y"}), frozenset({"northing", "north"})),
    "cell": (
        frozenset({"location_id", "cell_id", "cell"}),
        frozenset({"tower_id", "antenna_id", "site_id", "bts_id", "cid"}),
    ),
    "day": (frozenset({"d", "day"}),),
    "slot": (frozenset({"t", "slot"}),),
    "geometry": (
        frozenset({"geometry", "geom", "the_geom", "wkb_geometry", "wkt_geom", "geom_wkt", "wkt", "wkb"}),
        frozenset({"point", "geog", "geography", "shape"}),
    ),
    "trip": (frozenset({"tgeompoint", "tgeogpoint", "trip"}), frozenset({"traj", "trajectory"})),
    "h3": (
        frozenset({"h3", "h3_index", "h3index", "h3_cell", "h3cell", "h3_id", "h3id", "h3_address", "hex_id"})
        | {f"h3_{r}{level}" for level in range(16) for r in ("", "0" * (level < 10), "r", "res", "res_")},
        frozenset({"hex", "hexagon", "hexagon_id"}),
    ),
    "geohash": (
        frozenset({"geohash", "geo_hash", "gh"})
        | {f"{name}{length}" for length in range(1, 13) for name in ("geohash", "geohash_", "gh", "gh_")},
    ),
}
_CELL_FILE = {
    "id": (frozenset({"id", "cell_id", "location_id", "cell"}), *_TIERS["cell"][1:]),
    "lat": _TIERS["lat"],
    "lng": _TIERS["lng"],
}
_UNIT = re.compile(r".*[_(\[ ](ms|s)[)\]]?", re.IGNORECASE)
_PLACES = (("lat", "lng"), ("geometry",), ("x", "y"), ("h3",), ("geohash",), ("cell",))
_SOME = "(a column)"
_PLAIN = re.compile(r"#\d{1,5}|@file|@folder|(?:# ?)?[^\W\d][\w .()/:#-]{0,39}")
# Four digits that are no year, a date or a time of day: as in labels and times, and hardly in names.
_LABEL = re.compile(r"(?<![#\d])(?!(?:19|20)\d\d(?![-\d]))\d{4}|\d:\d")
_DATA = re.compile(r"\s*[+-]?[\d.][\d.,:eETZ/+ -]*", re.ASCII)
_NUMBER = re.compile(r"#?([1-9]\d{0,4})")
FROM_PATH = ("@file", "@folder")


@dataclass(frozen=True)
class Columns:
    """The columns to read (by role) and those that are ignored; `unit` if the name of the time column tells it."""

    of: Mapping[str, str]
    ignored: tuple[str, ...]
    unit: str | None = None

    @property
    def place(self) -> str:
        """How places are given: `degrees`, `metres` (x, y) or `cell`."""
        return "degrees" if {"lat", "geometry"} & {*self.of} else "metres" if "x" in self.of else "cell"

    @property
    def trip(self) -> str | None:
        """The column whose rows hold whole trips: their times and places; None if there is none."""
        column = self.of.get("geometry")
        return column if column is not None and column == self.of.get("time") else None


def find_columns(
    names: Sequence[str],
    given: Mapping[str, str],
    where: str,
    *,
    has_cells: bool = False,
    geometry: str | None = None,
) -> Columns:
    """Find the columns by their names, as scikit-mobility, mdl, accio, FlowKit, YJMob100K and others call them.

    Input: the names in the file, those `given` by role, the file's name for messages, whether a cells
    file was given, and the column of `geometry` that the file itself names. A column may be given by its number, and
    the user as `@file` or `@folder`, which stands for the name of the file or of its folder. Output: the columns, by
    their names, or as `#2` where several columns have the same name. Raises ColumnsNotFound that names all roles that
    are missing or ambiguous.

    >>> find_columns(["user_id", "timestamp", "lon", "lat", "speed"], {}, "a.csv").of
    {'user': 'user_id', 'time': 'timestamp', 'lat': 'lat', 'lng': 'lon'}
    """
    chosen = {role: _exact(numbered(name, names), names, role, where) for role, name in given.items()}
    wanted = _Wanted(list(dict.fromkeys(names)), where, chosen, geometry)
    wanted.find_user()
    if not wanted.find_trip(has_cells=has_cells):
        wanted.find_time()
        wanted.find_place(has_cells=has_cells)
    wanted.check()
    found = wanted.found
    _refuse_twice(found, names, where)
    if "cell" in found and not has_cells:
        raise ColumnsNotFound(f"{where}: places are given as cells; give the file of cells (id, lat, lng) with `cells`")
    ignored = tuple(name for name in wanted.names if name not in found.values() and name)
    unit = _UNIT.fullmatch(found["time"].strip()) if "time" in found else None
    return Columns(found, ignored, unit[1].lower() if unit else None)


@dataclass(eq=False)
class _Wanted:
    """Collects the columns that were found, and what is wrong about the others."""

    names: Sequence[str]
    where: str
    chosen: Mapping[str, str]
    geometry: str | None = None
    found: dict[str, str] = field(default_factory=dict)
    missing: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    several: list[tuple[str, list[str]]] = field(default_factory=list)

    def look(self, role: str) -> bool:
        """Find one role; False if there is no column for it."""
        if role in self.chosen:
            self.found[role] = self.chosen[role]
            return True
        if role == "geometry" and self.geometry is not None:
            self.found[role] = self.geometry
            return True
        hits = _hits(_TIERS[role], self.names)
        if len(hits) > 1:
            self.several.append((role, hits))
        if hits:
            self.found[role] = hits[0]
        return bool(hits)

    def find_user(self) -> None:
        if "user" in self.chosen:
            self.found["user"] = self.chosen["user"]
            return
        name, several = user_of(self.names)
        if name is not None:
            self.found["user"] = name
        elif several and not all(map(is_trip, several)):
            self.several.append(("user", several))
        else:
            self.missing.append(("a column for the user", ("user",)))

    def find_trip(self, *, has_cells: bool) -> bool:
        """Take a column of whole trips, if it was asked for, or if times or places are nowhere else."""
        if {*self.chosen} <= {"user"}:
            has = {role for role, tiers in _TIERS.items() if _hits(tiers, self.names)}
            places = [roles for roles in _PLACES if roles != ("cell",) or has_cells]
            times = "time" in has or {"day", "slot"} <= has
            if "trip" not in has or (times and any({*roles} <= has for roles in places)):
                return False
        elif "trip" not in self.chosen:
            return False
        self.look("trip")
        trip = self.found.pop("trip")
        self.found |= {"time": trip, "geometry": trip}
        return True

    def find_time(self) -> None:
        if not self._chose("day", "slot", "time") and self._find_date_and_clock():
            return
        if not self._chose("day", "slot"):
            if self.look("time"):
                if "date" in self.chosen:
                    self.found["date"] = self.chosen["date"]
                return
            if "date" in self.chosen:
                self.missing.append(("a column for the time of day", ("time",)))
                return
        if not (self.look("day") and self.look("slot")):
            self.missing.append(("a column for the time", ("time",)))

    def _find_date_and_clock(self) -> bool:
        """Take a date and a time of day in two columns, unless another column seems to hold both."""
        day = [self.chosen["date"]] if "date" in self.chosen else _hits(_TIERS["date"], self.names)
        clock = _hits(_TIERS["clock"], [name for name in self.names if name not in day])
        whole = [name for name in _hits(_TIERS["time"], self.names) if name not in (*day, *clock)]
        if len(day) != 1 or len(clock) != 1 or (whole and "date" not in self.chosen):
            if len(day) == 1 and len(clock) == 1 and len(whole) == 1:
                self.found["time"] = whole[0]
                return True
            return False
        self.found |= {"date": day[0], "time": clock[0]}
        return True

    def find_place(self, *, has_cells: bool) -> None:
        for roles in _place_order(self.chosen, has_cells=has_cells):
            before = len(self.several)
            looked = [self.look(role) for role in roles]  # all of them, to say everything at once
            if all(looked):
                return
            del self.several[before:]
            for role in roles:
                self.found.pop(role, None)
        self.missing.append(("columns for the place", ("lat", "lng")))

    def check(self) -> None:
        """Raise ColumnsNotFound for everything that is missing or ambiguous, with what to type."""
        if not self.missing and not self.several:
            return
        if any(_DATA.fullmatch(name) for name in self.names):
            raise _no_header(self.where)
        unclear = {role for role, _ in self.several}
        unclear |= {role for _, roles in self.missing for role in roles}
        said = [f"can't find {_listed([what for what, _ in self.missing])}"] if self.missing else []
        for role, hits in self.several:
            ways = " or ".join(f'`columns="{role}={one}"`' for one in told_names(hits, 4, among=self.names)[:4])
            told = ", ".join(told_names(hits, among=self.names))
            said.append(f"several columns could be the {role}: {told}; say which: {ways}")
        if self.missing:
            roles = [
                *self.found,
                *(role for role in ("user", "time", "lat", "lng") if role in unclear - set(self.found)),
            ]
            typed = ",".join(f"{role}={'…' if role in unclear else printable(self.found[role])}" for role in roles)
            said.append(
                f'the columns are: {", ".join(told_names(self.names))}; name them one by one: `columns="{typed}"`'
            )
        if any("time" in roles for _, roles in self.missing):
            said.append('if date and time are in two columns: `columns="date=…,time=…"`')
        if any("user" in roles for _, roles in self.missing):
            said.append('if each file or folder is one user: `columns="user=@file"` or `columns="user=@folder"`')
        if "user" in unclear and any(map(is_trip, self.names)):
            said.append("a trip or a session is not a person: one person would become several")
        raise ColumnsNotFound(f"{self.where}: {'; '.join(said)}")

    def _chose(self, *roles: str) -> bool:
        return any(role in self.chosen for role in roles)


def find_cell_columns(names: Sequence[str], where: str) -> dict[str, str]:
    """Find `id`, `lat`, `lng` in a cells file.

    >>> find_cell_columns(["location_id", "latitude", "longitude"], "cells.csv")
    {'id': 'location_id', 'lat': 'latitude', 'lng': 'longitude'}
    """
    found: dict[str, str | None] = {}
    for role, tiers in _CELL_FILE.items():
        hits = _hits(tiers, list(dict.fromkeys(names)))
        if len(hits) > 1:
            raise ColumnsNotFound(
                f"{where}: several columns could be the {role}: {', '.join(told_names(hits, among=names))}; keep one"
            )
        found[role] = hits[0] if hits else None
    _refuse_twice({role: name for role, name in found.items() if name is not None}, names, where)
    if missing := [role for role, name in found.items() if name is None]:
        raise ColumnsNotFound(f"{where}: a cells file has columns id, lat, lng; missing: {', '.join(missing)}")
    return {role: name for role, name in found.items() if name is not None}


def _place_order(chosen: Mapping[str, str], *, has_cells: bool) -> list[tuple[str, ...]]:
    """Return the ways of giving a place, those that were asked for first."""
    return sorted(_PLACES, key=lambda roles: not (any(r in chosen for r in roles) or (has_cells and "cell" in roles)))


def _exact(name: str, names: Sequence[str], role: str, where: str) -> str:
    if (
        name in names
        or (role == "user" and name in FROM_PATH)
        or (name.startswith("#") and number_of(name, names) is not None)
    ):
        return name
    alike = [n for n in dict.fromkeys(names) if n.strip().lower() == name.strip().lower()]
    if len(alike) == 1:
        return alike[0]
    if any(_DATA.fullmatch(n) for n in names):
        raise _no_header(where)
    raise ColumnsNotFound(
        f"{where}: can't find the column given for {role}; the columns are: {', '.join(told_names(names))}; "
        f'name one of them: `columns="{role}=…"`'
    )


def number_of(name: str, names: Sequence[str]) -> int | None:
    """Return the position (from 0) of a column that is given by its number (from 1), or None.

    >>> number_of("2", ["uid", "time"]), number_of("#2", ["uid", "time"]), number_of("time", ["uid", "time"])
    (1, 1, None)
    """
    found = _NUMBER.fullmatch(name)
    return int(found[1]) - 1 if found and int(found[1]) <= len(names) else None


def numbered(name: str, names: Sequence[str]) -> str:
    """Return the name of a column that is given by its number, else the name as it is given.

    >>> numbered("2", ["uid", "time"]), numbered("time", ["uid", "time"]), numbered("2", ["uid", "uid"])
    ('time', 'time', '#2')
    """
    at = number_of(name, names) if name not in names else None
    return name if at is None else keys_of(names)[at]


def keys_of(names: Sequence[str]) -> list[str]:
    """Return what columns are called here: by their names, or by their numbers if several have the same name.

    >>> keys_of(["uid", "lat", "uid"])
    ['#1', 'lat', '#3']
    """
    times = Counter(names)
    return [name if times[name] == 1 else f"#{number}" for number, name in enumerate(names, 1)]


def _refuse_twice(found: Mapping[str, str], names: Sequence[str], where: str) -> None:
    """Raise ColumnsNotFound if a column that was found is one of several with the same name."""
    for role, name in found.items():
        same = [number for number, other in enumerate(names, 1) if other == name]
        if len(same) > 1:
            ways = " or ".join(f'`columns="{role}={number}"`' for number in same[:4])
            raise ColumnsNotFound(
                f"{where}: {len(same)} columns are called {printable(name)}; rename one, or give its number: {ways}"
            )


def looks_like_data(name: str) -> bool:
    """Return whether a field in the first line holds a number or a time rather than a name.

    >>> looks_like_data("39.9"), looks_like_data("lat")
    (True, False)
    """
    return _DATA.fullmatch(name) is not None


def _hits(tiers: tuple[frozenset[str], ...], names: Sequence[str]) -> list[str]:
    """Return the names in the first tier that has any."""
    for tier in tiers:
        words = _plain_words(tier)
        if hits := [name for name in names if plain_name(name) in words]:
            return hits
    return []


@lru_cache(maxsize=100)
def _plain_words(tier: frozenset[str]) -> frozenset[str]:
    return frozenset(map(plain_name, tier))


def _no_header(where: str) -> ColumnsNotFound:
    return ColumnsNotFound(
        f"{where}: the first line seems to hold data, not names; add a line of column names, or give the columns by "
        'their numbers, e.g. `columns="user=1,time=2,lat=3,lng=4"`; if each '
        'file or folder is one user: `columns="user=@file,…"` or `columns="user=@folder,…"`'
    )


def _listed(parts: Sequence[str]) -> str:
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else parts[0]


def told_names(names: Sequence[str], most: int = 20, *, among: Sequence[str] | None = None) -> list[str]:
    """Return some names as a message may tell them.

    If one of all names (`among`) looks like none, the line of names may hold data. Then only usual names are told.

    >>> told_names(["uid", "weather"]), told_names(["uid", "weather", "39.9"])
    (['uid', 'weather'], ['uid', '(a column)', '(a column)'])
    """
    doubtful = not all(_PLAIN.fullmatch(name) for name in among or names if name)
    told = [printable(name) if not doubtful or _is_usual(name) else _SOME for name in names[:most]]
    return [*told, *([f"and {len(names) - most} more"] if len(names) > most else [])]


def _is_usual(name: str) -> bool:
    return means(name, *_TIERS) or user_of([name])[0] is not None


def means(name: str, *roles: str) -> bool:
    """Return whether a column of this name would be taken for one of the roles.

    >>> means("Longitude", "lat", "lng"), means("speed", "lat", "lng")
    (True, False)
    """
    return any(_hits(_TIERS[role], [name]) for role in roles)


def printable(name: str) -> str:
    """Return a name that is safe to print: plain words only, since without a header the first line holds data.

    >>> printable("lat"), printable("39.9"), printable("note1234"), printable("pop_2020")
    ('lat', '(a column)', '(a column)', 'pop_2020')
    """
    return name if _PLAIN.fullmatch(name) and not _LABEL.search(name) else _SOME
