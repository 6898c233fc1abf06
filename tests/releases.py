"""Releases made by hand: a few people, naive merging, and files written to the letter of the format.

It shares nothing with the product's methods and writer: plain loops, and pyarrow for the files.
"""

import copy
import hashlib
import json
import random
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
from pyproj import Transformer

from shoal.frame import Frame
from shoal.trajectories import Trajectories

CRS = "+proj=laea +lat_0=40 +lon_0=116 +datum=WGS84 +units=m +no_defs +type=crs"
FRAME = Frame(crs=CRS, cell_m=100, slot_s=60)
NOON = 20_000 * 1440  # a midnight of 2024 in slots of one minute
TIME = pa.timestamp("ms", "UTC")


def toy_people(users=60, samples=12, seed=1, frame=FRAME, city=40, start=NOON):
    """Return people who move at random in a small city for three days, labelled 0, 1, 2 … in random order."""
    draw = random.Random(seed)
    lists = [
        sorted({(start + draw.randrange(3 * 1440), draw.randrange(city), draw.randrange(city)) for _ in range(samples)})
        for _ in range(users)
    ]
    return people_of(lists, frame=frame, labels=draw.sample(range(users), users))


def people_of(lists, *, labels=None, frame=FRAME):
    """Make Trajectories of lists of (t, x, y), in canonical order, without the product's own code."""
    labels = list(range(len(lists))) if labels is None else labels
    pairs = sorted(((len(samples), sorted(set(samples))), label) for samples, label in zip(lists, labels, strict=True))
    flat = np.array([sample for (_, samples), _ in pairs for sample in samples], dtype=np.int32).reshape(-1, 3)
    offsets = np.concatenate([[0], np.cumsum([len(samples) for (_, samples), _ in pairs])]).astype(np.int64)
    t, x, y = (np.ascontiguousarray(flat[:, column]) for column in range(3))
    return Trajectories(offsets, t, x, y, frame, pa.array([label for _, label in pairs]))


def samples_of(people, user):
    return [tuple(sample) for sample in people.user(user).tolist()]


def merge(people, members):
    """Merge some users: walk through all samples in time and close a box once everybody is in it."""
    rows = sorted((sample, member) for member in members for sample in samples_of(people, member))
    closed, current = [], []
    for index, row in enumerate(rows):
        current.append(row)
        later = {member for _, member in rows[index + 1 :]}
        apart = index + 1 < len(rows) and rows[index + 1][0][0] > row[0][0]
        if apart and {member for _, member in current} == set(members) == later:
            closed.append(current)
            current = []
    closed.append(current)
    return [bounds([sample for sample, _ in part]) for part in closed]


def bounds(samples):
    return [edge for axis in zip(*samples, strict=True) for edge in (min(axis), max(axis))]


@dataclass
class Record:
    owner: int
    members: list
    boxes: list


@dataclass
class Draft:
    """A release before it is written; sabotage changes it anywhere. Records are numbered by their position."""

    people: Trajectories
    records: list
    claim: dict
    k: int
    edit_table: object = lambda table: table
    edit_manifest: object = lambda manifest: manifest
    edit_audit: object = lambda rows: rows
    edit_shoal: object = lambda shoal: shoal
    edit_bytes: object = lambda data: data
    numbers: list | None = None
    suppressed: int = 0
    seeded: bool = False
    stale_hash: bool = False

    def copy(self):
        twin = copy.copy(self)
        twin.records = copy.deepcopy(self.records)
        return twin

    def shoal(self):
        frame = self.people.frame
        return self.edit_shoal(
            {
                "format": 1,
                "method": "k-scale",
                "parameters": {"k": self.k},
                "claim": self.claim,
                "cell_m": frame.cell_m,
                "slot_s": frame.slot_s,
                "crs": frame.crs,
            }
        )

    def table(self):
        frame = self.people.frame
        numbers = self.numbers or range(len(self.records))
        rows = sorted((n, box) for n, record in zip(numbers, self.records, strict=True) for box in record.boxes)
        edge = np.array([box for _, box in rows], dtype=np.int64).reshape(-1, 6)
        edge[:, 1::2] += 1
        edge[:, :2] += frame.origin_slot
        start, end = edge[:, 0] * frame.slot_s * 1000, edge[:, 1] * frame.slot_s * 1000
        x0, x1, y0, y1 = (edge[:, n] * frame.cell_m for n in range(2, 6))
        columns = {
            "uid": pa.array([n for n, _ in rows], pa.int64()),
            "t_start": pa.array(start, pa.int64()).cast(TIME),
            "t_end": pa.array(end, pa.int64()).cast(TIME),
            "x_min": pa.array(x0, pa.int32()),
            "y_min": pa.array(y0, pa.int32()),
            "x_max": pa.array(x1, pa.int32()),
            "y_max": pa.array(y1, pa.int32()),
        }
        return with_derived(pa.table(columns), frame.crs)

    def audit(self):
        labels = self.people.labels.cast(pa.string()).to_pylist()
        numbers = self.numbers or range(len(self.records))
        rows = [
            (number, labels[record.owner], labels[member])
            for number, record in zip(numbers, self.records, strict=True)
            for member in record.members
        ]
        owners = {record.owner for record in self.records}
        rows += [(None, label, label) for user, label in enumerate(labels) if user not in owners]
        record, owner, member = zip(*self.edit_audit(rows), strict=True)
        return pa.table({"record": pa.array(record, pa.int64()), "owner": list(owner), "member": list(member)})

    def write(self, folder, name="release.parquet"):
        """Write release, manifest and audit; give the paths of the first and the last."""
        path = folder / name
        table = self.edit_table(self.table())
        own = table.schema.metadata or {}
        if path.suffix == ".csv":
            write_csv(table, path)
        else:
            pq.write_table(table.replace_schema_metadata({**own, "shoal": json.dumps(self.shoal())}), path)
        path.write_bytes(self.edit_bytes(path.read_bytes()))
        manifest = {
            "shoal": self.shoal(),
            "counts": {
                "records": two_digits(len(self.records)),
                "samples_published": two_digits(self.people.samples - self.suppressed),
                "samples_suppressed": two_digits(self.suppressed),
                "samples_created": 0,
            },
            "seeded": self.seeded,
            "files": {name: hashlib.sha256(b"" if self.stale_hash else path.read_bytes()).hexdigest()},
        }
        (folder / f"{name}.manifest.json").write_text(json.dumps(self.edit_manifest(manifest)))
        pq.write_table(self.audit(), folder / "audit.parquet")
        return path, folder / "audit.parquet"


def with_derived(table, crs):
    """Return the box columns with the middle of each box computed anew."""
    start, end = (table[name].cast(pa.int64()).to_numpy() for name in ("t_start", "t_end"))
    table = table.select(["uid", "t_start", "t_end", "x_min", "y_min", "x_max", "y_max"])
    table = table.append_column("datetime", pa.array((start + end) // 2, pa.int64()).cast(TIME))
    if crs is None:
        return table
    x0, x1, y0, y1 = (table[name].to_numpy().astype(float) for name in ("x_min", "x_max", "y_min", "y_max"))
    to_metres = Transformer.from_crs("OGC:CRS84", crs, always_xy=True)
    lng, lat = to_metres.transform((x0 + x1) / 2, (y0 + y1) / 2, direction="INVERSE")
    return table.append_column("lat", pa.array(lat)).append_column("lng", pa.array(lng))


def write_csv(table, path):
    columns = {}
    for name in table.column_names:
        column = table[name]
        if pa.types.is_timestamp(column.type):
            texts = np.datetime_as_string(column.to_numpy().astype("datetime64[ms]")).tolist()
            column = pa.array([text + "Z" for text in texts])
        columns[name] = column
    with path.open("wb") as file:
        file.write((",".join(columns) + "\n").encode())
        pa_csv.write_csv(pa.table(columns), file, pa_csv.WriteOptions(include_header=False, quoting_style="none"))


def two_digits(value):
    return int(float(f"{value:.1e}"))


def shuffled(records, seed):
    records = list(records)
    random.Random(seed).shuffle(records)
    return records


def grouped(people, k, seed=2):
    """Return a release of identical records in groups of k neighbours in canonical order (the last one larger)."""
    groups = [list(range(start, start + k)) for start in range(0, len(people) // k * k, k)]
    groups[-1] += range(groups[-1][-1] + 1, len(people))
    records = [Record(owner, list(group), merge(people, group)) for group in groups for owner in group]
    return Draft(people, shuffled(copy.deepcopy(records), seed), {"name": "k-anonymity", "k": k}, k)


def ring(people, k, seed=2):
    """Return a release in which record i merges users i … i+k−1, around: everybody is in k records."""
    records = []
    for owner in range(len(people)):
        members = [(owner + step) % len(people) for step in range(k)]
        records.append(Record(owner, members, merge(people, members)))
    return Draft(people, shuffled(records, seed), {"name": "cover", "k": k}, k)


# The same, as other code has it: a release in memory, and the original as a file


def in_memory(draft, **change):
    """Return a draft as the Release that a method would make, with some fields changed."""
    from shoal.claim import Claim
    from shoal.layouts import Boxes
    from shoal.release import Members, Release

    def edges(lists):
        return np.cumsum([0, *map(len, lists)])

    boxes, members = ([getattr(record, name) for record in draft.records] for name in ("boxes", "members"))
    owners = np.array([record.owner for record in draft.records])
    given = {
        "offsets": edges(boxes),
        "layout": Boxes(np.array([box for own in boxes for box in own], dtype=np.int32)),
        "frame": draft.people.frame,
        "method": "k-scale",
        "parameters": {"k": draft.k},
        "claim": Claim(**draft.claim),
        "suppressed": draft.suppressed,
        "members": Members(owners, edges(members), np.concatenate(members), draft.people),
    }
    return Release(**{**given, **change})


def write_events(people, path, extra=()):
    """Write the middle of every granule as an event, and `extra` rows (uid, ms, lat, lng); shuffled, each row twice."""
    frame = people.frame
    uids = people.labels.take(pa.array(np.repeat(np.arange(len(people)), people.counts)))
    lng, lat = frame.degrees((people.x + 0.5) * frame.cell_m, (people.y + 0.5) * frame.cell_m)
    ms = frame.epoch_s(people.t) * 1000 + 7_000
    rows = [*zip(uids.to_pylist(), ms.tolist(), lat.tolist(), lng.tolist(), strict=True), *extra] * 2
    uid, ms, lat, lng = zip(*shuffled(rows, seed=1), strict=True)
    pq.write_table(pa.table({"uid": uid, "datetime": pa.array(ms, TIME), "lat": lat, "lng": lng}), path)
    return path
