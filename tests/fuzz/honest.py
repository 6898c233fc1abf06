"""Honest releases to damage: their files, their people, and a slow judge of what is left after the damage."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyproj import Transformer

import shoal
from tests.fuzz.case import CANARY
from tests.oracle.cover import count_cover, one_way
from tests.publishing import written
from tests.releases import Draft, Record, grouped, merge, people_of, ring, samples_of, shuffled, toy_people
from tests.tracks import traces_of, walk

K, USERS = 3, 12
BOX = ["uid", "t_start", "t_end", "x_min", "y_min", "x_max", "y_max", "datetime", "lat", "lng"]
POINT = ["uid", "datetime", "lat", "lng"]
_SHARE = 1e-6  # of a degree


@dataclass(frozen=True)
class Honest:
    """A release that holds: its files by name (the release first), the audit's name, and who is in it."""

    files: dict[str, bytes]
    people: Any
    is_points: bool = False

    @property
    def first(self) -> str:
        return next(iter(self.files))

    @property
    def manifest(self) -> Any:
        return json.loads(self.files[f"{self.first}.manifest.json"])

    @property
    def table(self) -> pa.Table:
        return pq.read_table(io.BytesIO(self.files[self.first]))

    @property
    def audit(self) -> pa.Table:
        return pq.read_table(io.BytesIO(self.files["audit.parquet"]))


@cache
def honest() -> dict[str, Honest]:
    """Return the honest releases by name."""
    lists = [samples_of(people, user) for people in [toy_people(users=USERS, samples=4)] for user in range(USERS)]
    people = people_of(lists, labels=[f"{CANARY}-{n}" for n in range(USERS)])
    windows = {"name": "kte-cover", "k": K, "tau_s": 3600}
    drafts = {
        "groups": grouped(people, K),
        "compact": _compact(people),
        "ring": ring(people, K),
        "concealment": _claiming(grouped(people, K), {"name": "k-concealment", "k": K}),
        "windows": _claiming(grouped(people, K), windows),
        "none": _claiming(ring(people, K), {"name": "none", "why": "research"}),
    }
    made = {name: _files(draft, "r.parquet") for name, draft in drafts.items()}
    made["groups-csv"] = _files(grouped(people, K), "r.csv")
    return made | _points()


def _claiming(draft: Draft, claim: dict[str, Any]) -> Draft:
    draft.claim = claim
    return draft


def _compact(people: Any) -> Draft:
    """Return groups in which one record stands for all its people, which the column `count` says."""
    groups = [list(range(start, start + K)) for start in range(0, USERS, K)]
    records = shuffled([Record(group[0], group, merge(people, group)) for group in groups], 4)
    draft = Draft(people, records, {"name": "k-anonymity", "k": K}, K)
    draft.edit_table = lambda table: table.append_column("count", pa.array([K] * len(table), pa.int32()))
    labels = people.labels.to_pylist()
    draft.edit_audit = lambda _: [
        (number, labels[owner], labels[owner]) for number, record in enumerate(records) for owner in record.members
    ]
    return draft


def _files(draft: Draft, name: str) -> Honest:
    with tempfile.TemporaryDirectory() as folder:
        path, audit = draft.write(Path(folder), name)
        paths = (path, path.with_name(f"{name}.manifest.json"), audit)
        return Honest({one.name: one.read_bytes() for one in paths}, draft.people)


def _points() -> dict[str, Honest]:
    traces = traces_of({f"{CANARY}-{n}": walk(n, fixes=30) for n in range(6)})
    release = shoal.Promesse(step=100).anonymize(traces)
    made = {}
    for name, key in (("r.parquet", "points"), ("r.csv", "points-csv")):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, name)
            written(release, path, seed=1, audit=Path(folder, "audit.parquet"))
            manifest = path.with_name(f"{name}.manifest.json")
            said = {**json.loads(manifest.read_text()), "seeded": False}
            manifest.write_text(json.dumps(said, indent=2) + "\n")
            paths = (path, manifest, Path(folder, "audit.parquet"))
            made[key] = Honest({one.name: one.read_bytes() for one in paths}, traces, is_points=True)
    return made


# The judge


def doubts(was: Honest, folder: Path) -> str | None:
    """Return why a damaged release must not hold, None if there is no reason; slow and obvious."""
    path = folder / was.first
    try:
        manifest = json.loads(path.with_name(f"{path.name}.manifest.json").read_bytes())
        names, rows, header = _decoded(path, manifest)
    except FileNotFoundError:
        return None if was.first.endswith(".csv") else "there is no manifest"
    except Exception as error:
        return f"it can't be read: {type(error).__name__}"
    if set(manifest) != {"shoal", "counts", "seeded", "files"}:
        return "the manifest has other members"
    if manifest["files"] != {path.name: hashlib.sha256(path.read_bytes()).hexdigest()}:
        return "the hash is wrong"
    if json.dumps(manifest["shoal"], sort_keys=True) != json.dumps(header, sort_keys=True):
        return "the manifest contradicts the file"
    if CANARY in json.dumps(manifest) + "".join(names):
        return "it holds a label"
    if was.is_points:
        return None if names == POINT else "other columns"
    return _header(was.manifest["shoal"], header) or _boxes(was, manifest, header, names, rows)


def _header(was: dict[str, Any], now: dict[str, Any]) -> str | None:
    if set(was) != set(now):
        return "the header has other members"
    for name in ("format", "cell_m", "slot_s", "crs"):
        if json.dumps(was[name]) != json.dumps(now[name]) and not (name == "crs" and _same_crs(was[name], now[name])):
            return f"another {name}"
    return None


def _same_crs(was: str, now: Any) -> bool:
    def plain(text: str) -> list[tuple[str, object]]:
        pairs = [part.partition("=")[::2] for part in text.split()]
        return sorted((name, _number(value)) for name, value in pairs)

    return isinstance(now, str) and plain(was) == plain(now)


def _number(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def _decoded(path: Path, manifest: Any) -> tuple[list[str], list[dict[str, Any]], Any]:
    """Return the names of the columns, the rows (times in milliseconds) and the header."""
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            lines = list(csv.reader(file))
        return lines[0], [dict(zip(lines[0], map(_cell, line), strict=True)) for line in lines[1:]], manifest["shoal"]
    table = pq.read_table(path)
    header = json.loads(table.schema.metadata[b"shoal"])
    columns = {
        name: (table[name].cast(pa.int64()) if pa.types.is_timestamp(table[name].type) else table[name]).to_pylist()
        for name in table.column_names
    }
    return (
        table.column_names,
        [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
        header,
    )


def _cell(text: str) -> Any:
    if text.endswith("Z"):
        return pa.scalar(text).cast(pa.timestamp("ms", "UTC")).value
    return float(text) if "." in text or "e" in text else int(text)


def _boxes(was: Honest, manifest: Any, header: Any, names: list[str], rows: list[dict[str, Any]]) -> str | None:
    if [name for name in names if name not in ("count", "geometry")] != BOX:
        return "other columns"
    if any(value is None for row in rows for value in row.values()):
        return "gaps"
    frame = was.people.frame
    cell, slot = frame.cell_m, frame.slot_s * 1000
    records: dict[int, list[list[int]]] = {}
    weights: dict[int, int] = {}
    for row in rows:
        edges = [
            row["t_start"] / slot,
            row["t_end"] / slot,
            *(row[name] / cell for name in ("x_min", "x_max", "y_min", "y_max")),
        ]
        if any(edge != int(edge) for edge in edges):
            return "an edge off the grid"
        t0, t1, *places = map(int, edges)
        box = [t0 - frame.origin_slot, t1 - frame.origin_slot - 1, places[0], places[1] - 1, places[2], places[3] - 1]
        if any(box[at] > box[at + 1] for at in (0, 2, 4)):
            return "an empty box"
        records.setdefault(row["uid"], []).append(box)
        if weights.setdefault(row["uid"], row.get("count", 1)) != row.get("count", 1):
            return "two counts for one record"
        if derived := _derived(row, frame.crs):
            return derived
    copies = [sorted(records[uid]) for uid in records for _ in range(weights[uid])]
    return _claimed(was, manifest, header, copies)


@cache
def _to_degrees(crs: str) -> Any:
    return Transformer.from_crs(crs, "OGC:CRS84", always_xy=True)


def _derived(row: dict[str, Any], crs: str) -> str | None:
    lng, lat = _to_degrees(crs).transform((row["x_min"] + row["x_max"]) / 2, (row["y_min"] + row["y_max"]) / 2)
    if abs(row["lat"] - lat) > _SHARE or abs(row["lng"] - lng) > _SHARE:
        return "a place beside the middle of its box"
    if row["datetime"] != (row["t_start"] + row["t_end"]) // 2:
        return "a time beside the middle of its box"
    return None


def _claimed(was: Honest, manifest: Any, header: Any, records: list[list[list[int]]]) -> str | None:
    claim = header["claim"]
    k = claim.get("k") or header["parameters"].get("k")
    if claim["name"] == "none":
        return None
    if manifest["seeded"] and claim["name"] != "k-anonymity":
        return "it is seeded"
    if claim["name"] == "k-anonymity" and any(records.count(record) < k for record in records):
        return "a group that is too small"
    lists = [samples_of(was.people, user) for user in range(len(was.people))]
    if manifest["counts"]["samples_suppressed"]:
        return None
    if claim["name"].startswith("kte"):
        slots = claim["tau_s"] / was.people.frame.slot_s
        lists = [[other for other in own if 0 <= other[0] - one[0] < slots] for own in lists for one in own]
    least = min(count_cover(lists, records, one_way))
    return f"somebody is in {least} records only" if least < k else None


def audit_doubts(was: Honest, folder: Path) -> str | None:
    """Return why a damaged audit must not be believed beside an honest release; None if there is no reason."""
    try:
        table = pq.read_table(folder / "audit.parquet")
        rows = list(zip(*(table[name].to_pylist() for name in ("record", "owner", "member")), strict=True))
        _, boxes, _ = _decoded(folder / was.first, was.manifest)
    except Exception as error:
        return f"it can't be read: {type(error).__name__}"
    labels = [_text(label) for label in was.people.labels.to_pylist()]
    rows = [(record, _text(owner), _text(member)) for record, owner, member in rows]
    if any(owner not in labels or member not in labels for _, owner, member in rows):
        return "a person who is not there"
    if {row["uid"] for row in boxes} != {record for record, _, _ in rows if record is not None}:
        return "other records"
    if was.is_points:
        return None if all(owner == member for _, owner, member in rows) else "a member who is not the owner"
    if {owner for _, owner, _ in rows} != set(labels):
        return "somebody is missing"
    return _members(was, rows, boxes)


def _members(was: Honest, rows: list[tuple[Any, str, str]], boxes: list[dict[str, Any]]) -> str | None:
    compact = "count" in boxes[0]
    owners: dict[int, set[str]] = {}
    frame = was.people.frame
    labels = was.people.labels.to_pylist()
    for record, owner, member in rows:
        if record is None:
            continue
        owners.setdefault(record, set()).add(owner)
        for t, x, y in samples_of(was.people, labels.index(member)):
            ms, east, north = (t + frame.origin_slot) * frame.slot_s * 1000, x * frame.cell_m, y * frame.cell_m
            if not any(
                row["uid"] == record
                and row["t_start"] <= ms < row["t_end"]
                and row["x_min"] <= east < row["x_max"]
                and row["y_min"] <= north < row["y_max"]
                for row in boxes
            ):
                return "a member outside the record"
    if any(len(own) > 1 for own in owners.values()) and not compact:
        return "a record of two owners"
    if len([owner for own in owners.values() for owner in own]) > len(labels):
        return "an owner of two records"
    return None


def _text(label: Any) -> str:
    return label.decode(errors="replace") if isinstance(label, bytes) else str(label)
