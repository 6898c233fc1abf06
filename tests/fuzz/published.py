"""Releases, manifests, audits and run records, damaged in a form that is in order: does `verify` still believe them?"""

from __future__ import annotations

import hashlib
import io
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import shoal
from shoal.seen.recorded import recorded_reading
from tests.fuzz.case import Broken, Case, Kind, run_in
from tests.fuzz.honest import audit_doubts, doubts, honest
from tests.fuzz.mutate import EDGES, KEYS, TEXTS, any_bytes, as_json, lines, near, tree
from tests.fuzz.thrift import damaged_parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from random import Random


# Damage


def _cells(draw: Random, table: pa.Table) -> pa.Table:
    """Return a table with a few values of one column changed."""
    at = draw.randrange(table.num_columns)
    name, kind = table.column_names[at], table.schema.types[at]
    values = table[name].cast(pa.int64()).to_pylist() if pa.types.is_timestamp(kind) else table[name].to_pylist()
    for _ in range(draw.choice((1, 1, 2, len(values)))):
        row = draw.randrange(len(values))
        old, other = values[row], values[draw.randrange(len(values))]
        step = draw.choice((1, -1, 100, -100, 60_000, -60_000))
        new = draw.choice(
            (other, other, None, old if not isinstance(old, int | float) else old + step, near(draw, old))
        )
        values[row] = draw.choice(EDGES) if isinstance(old, int) and draw.random() < 0.1 else new
    if pa.types.is_timestamp(kind):
        return table.set_column(at, name, pa.array(values, pa.int64()).cast(kind))
    return table.set_column(at, name, pa.array(values, kind))


def _rows(draw: Random, table: pa.Table) -> pa.Table:
    """Return a table with rows that are gone, there twice, or elsewhere."""
    order = list(range(len(table)))
    for _ in range(draw.choice((1, 1, 2, 5))):
        if not order:
            break
        at, what = draw.randrange(len(order)), draw.randrange(4)
        if what == 0:
            del order[at]
        elif what == 1:
            order.insert(draw.randint(0, len(order)), order[at])
        elif what == 2:
            other = draw.randrange(len(order))
            order[at], order[other] = order[other], order[at]
        else:
            order = order[at:] if draw.random() < 0.5 else order[: at + 1]
    return table.take(pa.array(order, pa.int64()))


def _records(draw: Random, table: pa.Table) -> pa.Table:
    """Return a table with whole records that are gone, exchanged, numbered anew or joined."""
    name = table.column_names[0]
    numbers = table[name].to_pylist()
    known = [number for number in dict.fromkeys(numbers) if number is not None]
    one, other = draw.choice(known), draw.choice(known)
    what = draw.randrange(5)
    if what == 0:
        return table.filter(pa.array([number != one for number in numbers]))
    swap = {one: other, other: one} if what < 3 else {one: other} if what == 3 else {n: n + 1 for n in known}
    renamed = pa.array([swap.get(number, number) for number in numbers], table.schema.types[0])
    table = table.set_column(0, name, renamed)
    return table.sort_by(name) if draw.random() < 0.8 else table


def _columns(draw: Random, table: pa.Table) -> pa.Table:
    """Return a table whose columns have other types, names or places."""
    at, what = draw.randrange(table.num_columns), draw.randrange(6)
    names = table.column_names
    if what == 0:
        return table.remove_column(at)
    if what == 1:
        return table.append_column(draw.choice((*names, "note", "count", "geometry", *KEYS)), table.column(at))
    if what == 2:
        names[at] = draw.choice((*names, "count", "geometry", *KEYS))
        return table.rename_columns(names)
    if what == 3:
        draw.shuffle(names)
        return pa.Table.from_arrays([table[name] for name in names], names=names)
    kinds = (
        *(pa.int8(), pa.int32(), pa.int64(), pa.uint64(), pa.float32(), pa.float64(), pa.string(), pa.large_string()),
        *(pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "Asia/Tokyo"), pa.null()),
        *(pa.binary(), pa.bool_()),
        pa.dictionary(pa.int32(), pa.string()),
    )  # fmt: skip
    kind = draw.choice(kinds)
    column = pa.nulls(len(table), kind) if what == 4 else table.column(at).cast(kind)
    return table.set_column(at, names[at], column)


_DAMAGE = (_cells, _cells, _cells, _rows, _records, _columns)


def _damaged(draw: Random, table: pa.Table) -> pa.Table:
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        if table.num_columns and len(table):
            with suppress(
                pa.ArrowException, IndexError, KeyError, OverflowError, TypeError, ValueError
            ):  # damage that no table can have
                table = draw.choice(_DAMAGE)(draw, table)
    return table


def _written(draw: Random, table: pa.Table, metadata: dict[Any, Any] | None) -> bytes:
    sink = io.BytesIO()
    ways: dict[str, tuple[Any, ...]] = {
        "compression": ("zstd", "none", "snappy"),
        "row_group_size": (1, 7, 1 << 20),
        "use_dictionary": (True, False),
        "store_schema": (True, False),
    }
    chosen = {name: draw.choice(values) for name, values in ways.items() if draw.random() < 0.15}
    try:
        pq.write_table(table.replace_schema_metadata(metadata), sink, **chosen)
    except (pa.ArrowException, ValueError):
        return b"PAR1"
    return sink.getvalue()


def _text(table: pa.Table) -> bytes:
    """Return a table as a release in CSV is written."""
    from tests.releases import write_csv

    class Sink(io.BytesIO):
        def open(self, _: str) -> Sink:
            return self

        def __exit__(self, *_: object) -> None:
            return None

    sink = Sink()
    write_csv(table, sink)
    return sink.getvalue()


def _sealed(draw: Random, files: dict[str, bytes], name: str, manifest: Any) -> dict[str, bytes]:
    """Return the files with the hash in the manifest made right, mostly."""
    if isinstance(manifest, dict) and isinstance(manifest.get("files"), dict) and draw.random() < 0.93:
        manifest["files"][name] = hashlib.sha256(files[name]).hexdigest()
    return {**files, f"{name}.manifest.json": json.dumps(manifest).encode()}


# The kinds


def draw_release(draw: Random) -> Case:
    base = draw.choice([name for name in honest() if not name.endswith("csv")] + ["groups"] * 2)
    was = honest()[base]
    table, manifest = was.table, was.manifest
    metadata = dict(table.schema.metadata or {})
    header = json.loads(metadata[b"shoal"])
    what = draw.random()
    if what < 0.35:
        header = tree(draw, header, 2)
        metadata[b"shoal"] = as_json(draw, header) if draw.random() < 0.3 else json.dumps(header).encode()
        if draw.random() < 0.8:
            manifest["shoal"] = header
    if what > 0.3:
        table = _damaged(draw, table)
    if draw.random() < 0.03:
        metadata[draw.choice((b"pandas", b"geo", b"note"))] = draw.choice(TEXTS).encode()
    data = _written(draw, table, metadata)
    if draw.random() < 0.2:
        data = damaged_parquet(draw, data)
    elif draw.random() < 0.1:
        data = any_bytes(draw, data, 3)
    files = _sealed(draw, {was.first: data, "audit.parquet": was.files["audit.parquet"]}, was.first, manifest)
    return Case(files, {"base": base, "audit": draw.random() < 0.4})


def draw_release_text(draw: Random) -> Case:
    base = draw.choice(("groups-csv", "points-csv"))
    was = honest()[base]
    data, what = was.files[was.first], draw.random()
    parquet = honest()["groups" if base == "groups-csv" else "points"]
    if what < 0.4:
        data = _text_or(draw, parquet.table, data)
    elif what < 0.7:
        data = lines(draw, data)
    else:
        data = any_bytes(draw, data, 3)
    files = _sealed(draw, {was.first: data, "audit.parquet": was.files["audit.parquet"]}, was.first, was.manifest)
    return Case(files, {"base": base, "audit": draw.random() < 0.4})


def _text_or(draw: Random, table: pa.Table, other: bytes) -> bytes:
    try:
        return _text(_damaged(draw, table))
    except (pa.ArrowException, KeyError, TypeError, ValueError):
        return lines(draw, other)


def draw_manifest(draw: Random) -> Case:
    base = draw.choice(list(honest()))
    was = honest()[base]
    name = f"{was.first}.manifest.json"
    manifest = tree(draw, was.manifest, 2)
    data = as_json(draw, manifest)
    if draw.random() < 0.1:
        data = any_bytes(draw, was.files[name], 2)
    return Case({**was.files, name: data}, {"base": base, "audit": draw.random() < 0.2})


def draw_audit(draw: Random) -> Case:
    base = draw.choice(list(honest()))
    was = honest()[base]
    table = _damaged(draw, was.audit)
    if draw.random() < 0.1 and len(table):
        times = pa.array([draw.choice((None, 0, 60_000, *EDGES[:12])) for _ in range(2 * len(table))], pa.int64())
        kind = draw.choice((pa.timestamp("ms", "UTC"), pa.timestamp("ns"), pa.int64()))
        for start, name in ((0, "t_start"), (len(table), "t_end")):
            table = table.append_column(name, times.slice(start, len(table)).cast(kind))
    data = _written(draw, table, None)
    if draw.random() < 0.2:
        data = damaged_parquet(draw, data)
    elif draw.random() < 0.1:
        data = any_bytes(draw, data, 3)
    return Case({**was.files, "audit.parquet": data}, {"base": base, "audit": True})


def _believed(case: Case, folder: Path, doubt: Callable[..., str | None]) -> Any:
    """Verify and read back a damaged release; raise Broken if it holds and must not."""
    was, path = honest()[case.options["base"]], folder / case.first
    said: list[Any] = []
    try:
        shoal.read_release(path)
    except shoal.ShoalError as error:
        said.append(str(error))
    audit = folder / "audit.parquet" if case.options["audit"] else None
    verdict = shoal.verify(was.people, path, audit=audit, run=run_in(folder))
    if verdict.ok and (why := doubt(was, folder)):
        raise Broken("wrong", f"it holds, although: {why}")
    return [*said, verdict.to_dict(), verdict.messages]


def act_release(case: Case, folder: Path) -> Any:
    """Use a damaged release, or one with a damaged manifest, and sometimes its honest audit."""
    return _believed(case, folder, doubts)


def act_audit(case: Case, folder: Path) -> Any:
    """Use an honest release with a damaged audit."""
    return _believed(case, folder, audit_doubts)


def _either(draw: Random) -> Case:
    return draw_release_text(draw) if draw.random() < 0.2 else draw_release(draw)


_RUN_RECORD = {
    "shoal": "0.1.0",
    "method": "shoal",
    "seconds": 1.5,
    "read": {"tz": "Africa/Dakar", "cell": 500, "columns": {"user": "uid"}, "bbox": [-18, 12, -11, 17], "strict": True},
}


def draw_record(draw: Random) -> Case:
    was = honest()["groups"]
    record = {**_RUN_RECORD, "files": was.manifest["files"]}
    name = f"{was.first}.run.json"
    if draw.random() < 0.7:
        record["read"] = tree(draw, record["read"])
    else:
        record = tree(draw, record)
    return Case({**was.files, name: as_json(draw, record)})


def act_record(case: Case, folder: Path) -> Any:
    """Take reading options from a damaged run record."""
    recorded = recorded_reading(folder / "events.csv", folder / "r.parquet", None, audit=folder / "audit.parquet")
    return recorded.said()


RELEASE = Kind("release", _either, act_release)
MANIFEST = Kind("manifest", draw_manifest, act_release)
AUDIT = Kind("audit", draw_audit, act_audit)
RECORD = Kind("record", draw_record, act_record)
