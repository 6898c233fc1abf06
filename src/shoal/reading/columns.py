"""Columns: which column holds the user, the time and the place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shoal.errors import ColumnsNotFound
from shoal.reading.owners import FROM_PATH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Columns", "find_cell_columns", "find_columns", "printable"]

# Names people use, best first: the first tier with a match wins, two matches in one tier are ambiguous.
_TIERS: dict[str, tuple[frozenset[str], ...]] = {
    "user": (
        frozenset({"uid", "user_id", "userid", "user", "msisdn", "imsi", "subscriber", "subscriber_id"}),
        frozenset({"id", "person_id", "agent_id", "device_id", "vehicle_id", "taxi_id", "mmsi", "traj_id"}),
    ),
    "time": (
        frozenset({"datetime", "timestamp", "time", "time(ms)", "time(s)", "start_time", "date_time"}),
        frozenset({"event_time", "call_datetime", "ts", "epoch", "epoch_ms", "time_ms", "unix_time", "unixtime"}),
        frozenset({"date"}),
    ),
    "lat": (frozenset({"lat", "latitude"}),),
    "lng": (frozenset({"lng", "lon", "long", "longitude"}),),
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
_UNITS = {"time(ms)": "ms", "epoch_ms": "ms", "time_ms": "ms", "time(s)": "s"}
_PLACES = (("lat", "lng"), ("geometry",), ("x", "y"), ("h3",), ("geohash",), ("cell",))
_HOW = 'name them one by one, e.g. `columns="user=…,time=…,lat=…,lng=…"`'
_PLAIN = re.compile(r"[A-Za-z_][\w .()/:-]{0,39}", re.ASCII)
_DATA = re.compile(r"\s*[+-]?[\d.][\d.,:eETZ/+ -]*", re.ASCII)


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
    file was given, and the column of `geometry` that the file itself names. Output: the columns. Raises
    ColumnsNotFound when a role is missing or ambiguous.

    >>> find_columns(["user_id", "timestamp", "lon", "lat", "speed"], {}, "a.csv").of
    {'user': 'user_id', 'time': 'timestamp', 'lat': 'lat', 'lng': 'lon'}
    """
    chosen = {
        role: name if role == "user" and name in FROM_PATH else _exact(name, names, role, where)
        for role, name in given.items()
    }
    found: dict[str, str] = {}

    def look(role: str) -> bool:
        name = chosen.get(role) or (geometry if role == "geometry" else None)
        name = name or _match(role, _TIERS[role], names, where)
        if name is not None:
            found[role] = name
        return name is not None

    if not look("user"):
        raise _missing("a column for the user", names, where)
    if trip := _trip(names, chosen, where, has_cells=has_cells):
        ignored = tuple(name for name in names if name not in {found["user"], trip})
        return Columns({**found, "time": trip, "geometry": trip}, ignored)
    wants_days = "day" in chosen or "slot" in chosen
    if (wants_days or not look("time")) and not (look("day") and look("slot")):
        raise _missing("a column for the time", names, where)
    for roles in _place_order(chosen, has_cells=has_cells):
        if all(look(role) for role in roles):
            break
        for role in roles:
            found.pop(role, None)
    else:
        raise _missing("columns for the place", names, where)
    if "cell" in found and not has_cells:
        raise ColumnsNotFound(f"{where}: places are given as cells; give the file of cells (id, lat, lng) with `cells`")
    ignored = tuple(name for name in names if name not in found.values())
    unit = _UNITS.get(found["time"].strip().lower()) if "time" in found else None
    return Columns(found, ignored, unit)


def _trip(names: Sequence[str], chosen: Mapping[str, str], where: str, *, has_cells: bool) -> str | None:
    """Return the column of whole trips, if it was asked for, or if times or places are nowhere else."""
    if "trip" in chosen or {*chosen} - {"user"}:
        return chosen.get("trip")
    words = {name.strip().lower() for name in names}
    trip = _match("trip", _TIERS["trip"], names, where) if words & frozenset().union(*_TIERS["trip"]) else None
    has = {role for role, tiers in _TIERS.items() if any(words & tier for tier in tiers)}
    places = [roles for roles in _PLACES if roles != ("cell",) or has_cells]
    both = ("time" in has or {"day", "slot"} <= has) and any({*roles} <= has for roles in places)
    return None if both else trip


def find_cell_columns(names: Sequence[str], where: str) -> dict[str, str]:
    """Find `id`, `lat`, `lng` in a cells file.

    >>> find_cell_columns(["location_id", "latitude", "longitude"], "cells.csv")
    {'id': 'location_id', 'lat': 'latitude', 'lng': 'longitude'}
    """
    found = {role: _match(role, tiers, names, where) for role, tiers in _CELL_FILE.items()}
    if missing := [role for role, name in found.items() if name is None]:
        raise ColumnsNotFound(f"{where}: a cells file has columns id, lat, lng; missing: {', '.join(missing)}")
    return {role: name for role, name in found.items() if name is not None}


def _place_order(chosen: Mapping[str, str], *, has_cells: bool) -> list[tuple[str, ...]]:
    """Return the ways of giving a place, those that were asked for first."""
    return sorted(_PLACES, key=lambda roles: not (any(r in chosen for r in roles) or (has_cells and "cell" in roles)))


def _exact(name: str, names: Sequence[str], role: str, where: str) -> str:
    if name in names:
        return name
    alike = [n for n in names if n.strip().lower() == name.strip().lower()]
    if len(alike) != 1:
        raise _missing(f"the column given for {role}", names, where)
    return alike[0]


def _match(role: str, tiers: tuple[frozenset[str], ...], names: Sequence[str], where: str) -> str | None:
    for tier in tiers:
        hits = [name for name in names if name.strip().lower() in tier]
        if len(hits) > 1:
            listed = ", ".join(_shown(hits))
            raise ColumnsNotFound(
                f'{where}: several columns could be the {role}: {listed}; say which: `columns="{role}=…"`'
            )
        if hits:
            return hits[0]
    return None


def _missing(what: str, names: Sequence[str], where: str) -> ColumnsNotFound:
    if any(_DATA.fullmatch(name) for name in names):
        return ColumnsNotFound(f"{where}: the first line seems to hold data, not names; add a line of column names")
    listed = ", ".join(_shown(names))
    return ColumnsNotFound(f"{where}: can't find {what}; the columns are: {listed}; {_HOW}")


def _shown(names: Sequence[str], most: int = 20) -> list[str]:
    return [*map(printable, names[:most]), *([f"and {len(names) - most} more"] if len(names) > most else [])]


def printable(name: str) -> str:
    """Return a name that is safe to print: plain words only, since without a header the first line holds data.

    >>> printable("lat"), printable("39.9")
    ('lat', '(a column)')
    """
    return name if _PLAIN.fullmatch(name) else "(a column)"
