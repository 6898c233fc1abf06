"""A catalogue of crafted releases: what each lies about, and what the verifier must say.

Every case starts from an honest release in memory, changes one thing, and is written as somebody would who knows the
format: the manifest's hash is right. `None` as code: the release is honest in another form, and holds.
"""

import json
import random
import re
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.claim import Claim
from shoal.errors import CannotCheck
from shoal.seen.codes import NOT_CHECKED
from shoal.seen.findings import Findings
from shoal.verifier import verify
from shoal.verifier.header import check_header
from tests.releases import (
    CRS,
    NOON,
    Record,
    bounds,
    grouped,
    merge,
    ring,
    samples_of,
    shuffled,
    toy_people,
    with_derived,
)

K = 4
PEOPLE = toy_people(users=40, samples=8, seed=6)
RING, GROUPS = ring(PEOPLE, K), grouped(PEOPLE, K)
LABELS = PEOPLE.labels.cast(pa.string()).to_pylist()
HOME = 39.904211
CASES = {}


def lie(about, code, start=GROUPS, *, blind=True, name="release.parquet"):
    """Enter a case: `about` says what it lies about; `blind`: it is found without the audit too."""

    def enter(craft):
        key = about if craft.__name__ == "craft" else craft.__name__.replace("_", " ")
        assert key not in CASES, key
        CASES[key] = (start, craft, code, blind, name)
        return craft

    return enter


def many(about, code, changes, start=GROUPS, **how):
    """Enter a case for each change: {name: craft}."""
    for key, craft in changes.items():
        craft.__name__ = key
        lie(about, code, start, **how)(craft)


def column(table, name, values, kind=None):
    kind = kind or table.schema.field(name).type
    return table.set_column(table.column_names.index(name), name, pa.array(values, kind))


def one(table, name, row, value):
    values = table[name].to_pylist()
    values[row] = value
    return column(table, name, values)


def of_table(edit):
    def craft(draft):
        draft.edit_table = edit

    return craft


def of_shoal(**change):
    def craft(draft):
        draft.edit_shoal = lambda shoal: {**shoal, **change}

    return craft


def of_manifest(edit):
    def craft(draft):
        draft.edit_manifest = edit

    return craft


def of_counts(**change):
    return of_manifest(lambda said: {**said, "counts": {**said["counts"], **change}})


def of_bytes(edit):
    def craft(draft):
        draft.edit_bytes = edit

    return craft


def of_audit(edit):
    def craft(draft):
        draft.edit_audit = edit

    return craft


# The header: a word, a number or a projection that carries something, or that asks for less

many(
    "a projection that names a home",
    "leaks/header-crs",
    {
        f"crs_{n}": of_shoal(crs=crs)
        for n, crs in enumerate(
            [
                f"+proj=laea +lat_0={HOME} +lon_0=116 +datum=WGS84 +units=m +no_defs +type=crs",
                f"+proj=laea +lat_0=40 +lon_0=116 +x_0={HOME} +datum=WGS84 +units=m +no_defs +type=crs",
                f"+proj=laea +lat_0=40 +lon_0=116 +y_0={int(HOME * 1e6)} +datum=WGS84 +units=m +no_defs +type=crs",
                f"+proj=tmerc +lat_0={HOME} +lon_0=116 +k=1 +datum=WGS84 +units=m +no_defs +type=crs",
                f"+proj=lcc +lat_1={HOME} +lat_2=41 +lon_0=116 +datum=WGS84 +units=m +no_defs +type=crs",
                f"+proj=eqc +lat_ts={HOME} +lon_0=116.4 +datum=WGS84 +units=m +no_defs +type=crs",
                f"+proj=merc +lon_0=116 +k_0=0.{int(HOME * 1e6)} +datum=WGS84 +units=m +no_defs +type=crs",
                f"+proj=omerc +lat_0=40 +alpha={HOME} +lonc=116 +datum=WGS84 +units=m +no_defs +type=crs",
                "+proj=laea +lat_0=40 +lon_0=116 +a=6378137.39904211 +b=6356752 +units=m +no_defs +type=crs",
                "+proj=laea +lat_0=40 +lon_0=116 +towgs84=39.904211,116,0 +units=m +no_defs +type=crs",
                CRS + " +title=ann",
                CRS.replace("+no_defs", "+no_defs +no_defs"),
                CRS.replace("lat_0=40", "lat_0=040"),
                CRS.replace("lat_0=40", "lat_0=40.0"),
                CRS.replace(" +units", "  +units"),
                "urn:ogc:def:crs:EPSG::32650",
                'PROJCRS["ann",REMARK["39.9,116.4"]]',
                "EPSG:32650+5773",
                "EPSG:4326",
                "ESRI:13800138000",
                "IGNF:ANN.SMITH",
            ]
        )
    },
)
many(
    "a method's name that is a person's, or one that nobody knows",
    "leaks/header-method",
    {
        f"method_{n}": of_shoal(method=method)
        for n, method in enumerate(
            ["ann-smith", "lives-at-39-904211", "Shoal", "shoal ", "by-hand", None, 7, ["shoal"]]
        )
    },
)
many(
    "settings that are no settings of the method, or out of all bounds",
    "leaks/header-parameters",
    {
        f"parameters_{n}": of_shoal(method=method, parameters={"k": K, **more})
        for n, (method, more) in enumerate(
            [
                ("k-scale", {"seed": 7}),
                ("k-scale", {"phone": 1380013800}),
                ("k-scale", {"constraint": "ann"}),
                ("k-scale", {"candidates": 13_800_138}),
                ("k-scale", {"max_members": 40.7}),
                ("shoal", {"max_span_m": 138_001_380}),
                ("shoal", {"max_duration_s": 1_380_013_800}),
                ("glove", {"merge": "two-stage "}),
                ("glove", {"merge": ["two-stage"]}),
                ("shoal", {"k_": 3}),
                ("shoal", {"": 3}),
            ]
        )
    },
)
many(
    "the grid",
    "leaks/header-grid",
    {"cells_like_a_phone_number": of_shoal(cell_m=1_380_013_800), "slots_like_one": of_shoal(slot_s=1_380_013_800)},
)
many(
    "keys of the object",
    "leaks/header-keys",
    {"a_note": of_shoal(note="x"), "a_seed_in_the_header": of_shoal(seed=3), "a_path": of_shoal(source="/home/ann")},
)
many(
    "what is understood at all",
    "integrity/header",
    {
        "another_format": of_shoal(format=2),
        "a_format_that_is_true": of_shoal(format=True),
        "a_claim_without_a_name": of_shoal(claim={"k": K}),
        "a_claim_nobody_knows": of_shoal(claim={"name": "perfect"}),
        "cells_of_nothing": of_shoal(cell_m=0),
        "a_negative_slot": of_shoal(slot_s=-60),
        "an_infinite_cell": of_shoal(cell_m=10**12),
        "a_claim_of_no_whole_k": of_shoal(claim={"name": "k-anonymity", "k": 4.0}),
    },
)
many(
    "the claim says more than a claim",
    "leaks/header-claim",
    {
        "a_claim_with_a_reason": of_shoal(claim={"name": "k-anonymity", "k": K, "why": "ann"}),
        "a_claim_with_a_note": of_shoal(claim={"name": "k-anonymity", "k": K, "note": 1}),
        "a_claim_of_another_kind": of_shoal(claim={"name": "k-anonymity", "k": K, "epsilon_per_m": 0.39904211}),
    },
)
lie("the parameters and the claim say different k", "leaks/header-differs")(of_shoal(parameters={"k": K + 1}))
many(
    "a method of points for boxes",
    "leaks/header-rows",
    {
        "boxes_of_promesse": of_shoal(method="promesse", parameters={"step_m": 100}),
        "boxes_with_noise": of_shoal(method="geo-indistinguishability", parameters={"epsilon_per_m": 0.01}),
    },
)


# Claims that are asked for in words that weaken them


def raw_pieces(draft):
    for record in draft.records:
        slots = {}
        for sample in sorted(sample for member in record.members for sample in samples_of(PEOPLE, member)):
            slots.setdefault(sample[0], []).append(sample)
        record.boxes = [bounds(samples) for samples in slots.values()]


@lie("raw samples of a group, under the name of GLOVE", "identical/area-of-few")
def raw_samples_of_a_group_under_gloves_name(draft):
    raw_pieces(draft)
    draft.edit_shoal = lambda shoal: {**shoal, "method": "glove", "parameters": {"k": K, "merge": "two-stage"}}


@lie("raw samples of a group, with GLOVE's better merge", "identical/too-few-users")
def raw_samples_of_a_group_as_k_merge(draft):
    raw_pieces(draft)
    draft.edit_shoal = lambda shoal: {**shoal, "method": "glove", "parameters": {"k": K, "merge": "k-merge"}}


@lie("raw samples of one, wide in time", "identical/area-of-few")
def exact_places_with_vague_times_under_gloves_name(draft):
    raw_pieces(draft)
    for record in draft.records:
        starts = [box[0] for box in record.boxes]
        for box, following in zip(record.boxes, [*starts[1:], record.boxes[-1][1] + 2], strict=True):
            box[1] = following - 1
    draft.edit_shoal = lambda shoal: {**shoal, "method": "glove", "parameters": {"k": K, "merge": "two-stage"}}


@lie("truth of groups where people in boxes are counted", "cover/too-few-records", RING)
def cover_with_the_truth_of_groups(draft):
    raw_pieces(draft)
    draft.edit_shoal = lambda shoal: {**shoal, "method": "glove", "parameters": {"k": K, "merge": "two-stage"}}


@lie("fine boxes under the name of a coarse grid", "truth/finer-grid")
def fine_boxes_as_uniform(draft):
    draft.claim = {"name": "none"}
    draft.edit_shoal = lambda shoal: {**shoal, "method": "uniform", "parameters": {"cell_m": 1000, "slot_s": 3600}}


many(
    "a coarse grid that is none",
    "truth/finer-grid",
    {
        "uniform_without_its_grid": of_shoal(method="uniform", parameters={"k": K}),
        "uniform_of_no_whole_cells": of_shoal(method="uniform", parameters={"cell_m": 150, "slot_s": 60}),
    },
)


@lie("cover is claimed as k-anonymity", "identical/small-groups", RING)
def cover_as_k_anonymity(draft):
    draft.claim = {"name": "k-anonymity", "k": K}


@lie("one record too few of a group", "identical/small-groups")
def a_k_larger_than_the_groups(draft):
    draft.k, draft.claim = K + 1, {"name": "k-anonymity", "k": K + 1}


@lie("a larger k for cover", "cover/too-few-records", RING)
def a_k_larger_than_the_cover(draft):
    draft.k, draft.claim = K + 1, {"name": "cover", "k": K + 1}


# Rows


@lie("a box that is one cell too narrow", "identical/left-out")
def a_box_too_narrow(draft):
    group = draft.records[0].members
    for record in draft.records:
        if record.members == group:
            box = max(record.boxes, key=lambda box: box[3] - box[2])
            box[3] -= 1


@lie("a box one minute too short", "identical/left-out")
def a_box_too_short(draft):
    group = draft.records[0].members
    for record in draft.records:
        if record.members == group:
            box = max(record.boxes, key=lambda box: box[1] - box[0])
            box[0] += 1


@lie("copies that differ by a cell", "identical/small-groups")
def one_copy_is_a_little_wider(draft):
    draft.records[0].boxes[0][3] += 1


@lie("a member's data is elsewhere", "identical/left-out")
def a_box_moved_a_kilometre(draft):
    group = draft.records[0].members
    for record in draft.records:
        if record.members == group:
            record.boxes[0][2] += 10
            record.boxes[0][3] += 10


@lie("a member is missing", "identical/left-out")
def a_member_is_in_no_group(draft):
    group = draft.records[0].members
    fewer = merge(PEOPLE, group[1:])
    for record in draft.records:
        if record.members == group:
            record.boxes = [list(box) for box in fewer]


@lie("the same person fills a group", "identical/too-few-users")
def one_person_k_times(draft):
    group = draft.records[0].members
    alone = merge(PEOPLE, group[:1])
    for record in draft.records:
        if record.members == group:
            record.boxes = [list(box) for box in alone]


@lie("a copy too many", "identical/more-records-than-users")
def more_records_than_people(draft):
    first = draft.records[0]
    draft.records.append(Record(first.owner, list(first.members), [list(box) for box in first.boxes]))


@lie("a group twice as large as it is", "identical/too-many-people")
def a_group_is_padded_with_copies_of_another(draft):
    groups = sorted({tuple(sorted(record.members)) for record in draft.records})
    padded, gone = groups[0], groups[1]
    joined = merge(PEOPLE, [*gone, *groups[2]])
    for record in draft.records:
        members = tuple(sorted(record.members))
        if members == gone:
            record.boxes = [list(box) for box in merge(PEOPLE, padded)]
        elif members == groups[2]:
            record.boxes = [list(box) for box in joined]


@lie("boxes that overlap", "truth/boxes")
def boxes_that_overlap(draft):
    for record in draft.records:
        record.boxes.append(list(record.boxes[-1]))


@lie("a box where nobody was", "identical/left-out")
def a_box_where_nobody_was(draft):
    for record in draft.records:
        record.boxes.append([NOON + 10_000, NOON + 10_000, 0, 1, 0, 1])


@lie("raw data beside groups", "cover/raw-records", RING)
def one_raw_record(draft):
    record = draft.records[0]
    record.members, record.boxes = [record.owner], merge(PEOPLE, [record.owner])


@lie("one box around everything and raw copies", "cover/raw-records", RING)
def a_giant_and_raw_copies(draft):
    giant = merge(PEOPLE, range(len(PEOPLE)))
    for number, record in enumerate(draft.records):
        alone = number >= K
        record.members = [record.owner] if alone else list(range(len(PEOPLE)))
        record.boxes = merge(PEOPLE, [record.owner]) if alone else [list(box) for box in giant]


# Columns, values, types


def at(table, column_name, row):
    return table[column_name][row].as_py()


many(
    "a column that is none of the format's, or missing",
    "leaks/columns",
    {
        "a_name_beside": of_table(lambda t: t.append_column("name", pa.array(["ann"] * len(t)))),
        "an_index_of_pandas": of_table(lambda t: t.append_column("__index_level_0__", pa.array(range(len(t))))),
        "no_time_of_the_middle": of_table(lambda t: t.drop_columns(["datetime"])),
        "other_order_of_columns": of_table(lambda t: t.select(t.column_names[::-1])),
        "a_column_whose_name_is_a_place": of_table(
            lambda t: t.rename_columns([*t.column_names[:-1], "39.904211,116.4"])
        ),
    },
)
many(
    "types",
    "leaks/column-types",
    {
        "narrow_numbers": of_table(lambda t: column(t, "uid", t["uid"].to_pylist(), pa.int32())),
        "text_for_metres": of_table(lambda t: t.set_column(3, "x_min", t["x_min"].cast(pa.string()))),
        "local_times": of_table(lambda t: t.set_column(1, "t_start", t["t_start"].cast(pa.timestamp("ms")))),
        "finer_times": of_table(lambda t: t.set_column(1, "t_start", t["t_start"].cast(pa.timestamp("us", "UTC")))),
        "places_in_short": of_table(lambda t: t.set_column(8, "lat", t["lat"].cast(pa.float32()))),
        "numbers_in_a_dictionary_of_text": of_table(
            lambda t: t.set_column(0, "uid", t["uid"].cast(pa.string()).dictionary_encode())
        ),
    },
)
many(
    "a true place or time in a derived column",
    "leaks/places",
    {
        "one_raw_latitude": of_table(lambda t: one(t, "lat", 5, HOME)),
        "the_last_bit_of_each_longitude": of_table(
            lambda t: column(t, "lng", np.nextafter(t["lng"].to_numpy(), 180.0))
        ),
        "exchanged_axes": of_table(lambda t: column(column(t, "lat", t["lng"].to_numpy()), "lng", t["lat"].to_numpy())),
    },
)
lie("a true time in a derived column", "leaks/times")(of_table(lambda t: one(t, "datetime", 5, at(t, "t_start", 5))))
many(
    "values that are missing or no numbers",
    "leaks/missing-values",
    {
        "nothing_for_a_metre": of_table(lambda t: one(t, "x_min", 5, None)),
        "nothing_for_a_number": of_table(lambda t: one(t, "uid", 5, None)),
        "nothing_for_a_place": of_table(lambda t: one(t, "lat", 5, None)),
    },
)
lie("a payload in a number that is none", "leaks/not-numbers")(
    of_table(
        lambda t: one(t, "lat", 5, struct.unpack("<d", b"ann...\xf8\x7f")[0])  # what is behind the first bits of a NaN
    )
)
lie("minus nothing", "leaks/places")(of_table(lambda t: column(t, "lng", -t["lng"].to_numpy())))


def milliseconds(table):
    start = table["t_start"].cast(pa.int64()).to_numpy().copy()
    start[5] -= 1380
    made = column(table, "t_start", start, pa.int64())
    return with_derived(made.set_column(1, "t_start", made["t_start"].cast(pa.timestamp("ms", "UTC"))), CRS)


lie("milliseconds that carry something", "leaks/fractions")(of_table(milliseconds))


@lie("an edge off the grid", "leaks/off")
def an_edge_off_the_grid(draft):
    draft.edit_table = lambda table: with_derived(one(table, "x_max", 5, at(table, "x_max", 5) + 37), CRS)


# Numbers and order


@lie("numbers in the order of labels", "leaks/order")
def numbers_by_label(draft):
    draft.records.sort(key=lambda record: PEOPLE.labels[record.owner].as_py())


@lie("groups by label, one record of each in turn", "leaks/order")
def rounds_by_label(draft):
    lowest = {tuple(r.members): min(PEOPLE.labels[m].as_py() for m in r.members) for r in draft.records}
    turn = {tuple(r.members): iter(range(len(PEOPLE))) for r in draft.records}
    keys = [(next(turn[tuple(r.members)]), lowest[tuple(r.members)]) for r in draft.records]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    draft.records = [draft.records[n] for n in order]


@lie("groups in random order, there and back", "leaks/regular")
def there_and_back(draft):
    groups = {}
    for record in draft.records:
        groups.setdefault(tuple(record.members), []).append(record)
    turns = [[own[n] for own in shuffled(groups.values(), 1)] for n in range(K)]
    draft.records = [record for n, turn in enumerate(turns) for record in (turn if n % 2 else turn[::-1])]


@lie("identical records side by side", "leaks/side-by-side")
def side_by_side(draft):
    groups = shuffled(sorted({tuple(record.members) for record in draft.records}), 3)
    draft.records.sort(key=lambda record: groups.index(tuple(record.members)))


@lie("labels as numbers", "leaks/numbering")
def numbers_with_gaps(draft):
    draft.numbers = [n * 3 for n in range(len(draft.records))]


@lie("rows by time, not by record", "leaks/unsorted")
def rows_out_of_order(draft):
    draft.edit_table = lambda table: table.sort_by([("t_start", "ascending")])


lie("two rows exchanged, one bit", "leaks/unsorted")(of_table(lambda t: t.take(pa.array([1, 0, *range(2, len(t))]))))


# Metadata

many(
    "keys of the footer",
    "leaks/metadata-keys",
    {
        "pandas_metadata": of_table(lambda t: t.replace_schema_metadata({"pandas": "{}"})),
        "a_key_with_a_name": of_table(lambda t: t.replace_schema_metadata({"ann": ""})),
        "an_empty_key": of_table(lambda t: t.replace_schema_metadata({"": "ann"})),
    },
)
lie("metadata of a column", "leaks/column-metadata")(
    of_table(
        lambda t: t.cast(
            pa.schema([t.schema.field(0).with_metadata({"home": str(HOME)}), *list(t.schema)[1:]], t.schema.metadata)
        )
    )
)


def with_polygons(geo, *, spoil=lambda ring: ring):
    """Add geometry, as `--geo` does; something about it may be wrong."""

    def edit(table):
        frame = PEOPLE.frame
        values = []
        for row in table.to_pylist():
            x = [row["x_min"], row["x_max"], row["x_max"], row["x_min"], row["x_min"]]
            y = [row["y_min"], row["y_min"], row["y_max"], row["y_max"], row["y_min"]]
            lng, lat = frame.degrees(np.array(x, float), np.array(y, float))
            ring = spoil(np.stack([lng, lat], axis=1))
            values.append(struct.pack("<BIII", 1, 3, 1, len(ring)) + ring.tobytes())
        table = table.append_column("geometry", pa.array(values, pa.binary()))
        return table.replace_schema_metadata({} if geo is None else {"geo": json.dumps(geo)})

    return of_table(edit)


COLUMN = {"encoding": "WKB", "geometry_types": ["Polygon"]}
GEO = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": COLUMN}}


def geo_of(**more):
    return {**GEO, "columns": {"geometry": {**COLUMN, **more}}}


many(
    "metadata of the geometry",
    "leaks/geo-metadata",
    {
        "a_box_around_a_home": with_polygons(geo_of(bbox=[116.4, HOME, 116.4, HOME])),
        "a_note_in_geo": with_polygons({**GEO, "creator": "ann"}),
        "a_crs_in_geo": with_polygons(geo_of(crs={"name": "ann"})),
        "an_epoch_in_geo": with_polygons(geo_of(epoch=2024.39904211)),
        "edges_in_geo": with_polygons(geo_of(edges="spherical")),
        "another_version_of_geo": with_polygons({**GEO, "version": "1.0.0"}),
    },
)
lie("geometry without metadata", "leaks/geometry-alone")(with_polygons(None))
many(
    "geometry that is another one",
    "leaks/geometry-corners",
    {
        "finer_corners": with_polygons(GEO, spoil=lambda ring: ring + 1e-12),
        "a_box_drawn_elsewhere": with_polygons(GEO, spoil=lambda ring: ring[::-1] + 0.001),
    },
)
lie("a sixth corner", "leaks/geometry-form")(with_polygons(GEO, spoil=lambda ring: np.concatenate([ring[:1], ring])))


def footer_of(data):
    return len(data) - 8 - int.from_bytes(data[-8:-4], "little")


def in_footer(old, new):
    def edit(data):
        begin = footer_of(data)
        assert old in data[begin:]
        assert len(old) == len(new)
        return data[:begin] + data[begin:].replace(old, new)

    return edit


def longer_footer(data):
    size = int.from_bytes(data[-8:-4], "little")
    return data[:-8] + b"ann." + (size + 4).to_bytes(4, "little") + b"PAR1"


many(
    "the program's name",
    "leaks/writer",
    {
        "a_name_for_a_program": of_bytes(in_footer(b"parquet-cpp-arrow", b"ann-smith-beijing")),
        "a_version_like_a_place": of_bytes(
            in_footer(pa.cpp_version.encode(), b"39.904211"[: len(pa.cpp_version)].ljust(len(pa.cpp_version), b"9"))
        ),
    },
)
many(
    "bytes that are no part of a column",
    "leaks/stray-bytes",
    {
        "bytes_before_the_footer": of_bytes(lambda data: data[: footer_of(data)] + b"ann" + data[footer_of(data) :]),
        "bytes_in_the_footer": of_bytes(longer_footer),
    },
)


def first_statistics(data):
    """Another least latitude in the statistics: a home."""
    lat = pq.read_metadata(pa.BufferReader(data)).row_group(0).column(8).statistics.min
    return in_footer(struct.pack("<d", lat), struct.pack("<d", HOME))(data)


lie("statistics that name a home", "leaks/bytes")(of_bytes(first_statistics))


def again(**how):
    return lambda data: _written(pq.read_table(pa.BufferReader(data)), **how)


def _written(table, **how):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **how)
    return sink.getvalue().to_pybytes()


def index_pages(data):
    return again(write_page_index=True)(data)


many(
    "what a writer can do otherwise, a bit each",
    "leaks/bytes",
    {
        "no_statistics": of_bytes(again(write_statistics=False)),
        "checksums_of_pages": of_bytes(again(write_page_checksum=True)),
        "other_pages": of_bytes(again(data_page_version="2.0")),
        "short_pages": of_bytes(again(data_page_size=64, write_batch_size=8, use_dictionary=False)),
        "compressed_harder": of_bytes(again(compression="zstd", compression_level=15)),
    },
)
lie("an index of pages beside the columns", "leaks/stray-bytes")(of_bytes(index_pages))


def silent(data):
    """Change a bit that no reader looks at."""
    plain = again(compression="none")(data)
    rows = pq.read_table(pa.BufferReader(plain))
    chunk = pq.read_metadata(pa.BufferReader(plain)).row_group(0).column(0)
    for place in range(chunk.dictionary_page_offset, chunk.dictionary_page_offset + chunk.total_compressed_size):
        changed = bytearray(plain)
        changed[place] ^= 128
        try:
            same = pq.read_table(pa.BufferReader(bytes(changed))).equals(rows)
            pq.read_metadata(pa.BufferReader(bytes(changed)))
        except (OSError, pa.ArrowException):
            continue
        if same:
            return bytes(changed)
    raise AssertionError


lie("a bit of a page that no reader looks at", "leaks/bytes")(of_bytes(silent))


def encrypted(data):
    """Another magic: an encrypted footer."""
    return b"PARE" + data[4:-4] + b"PARE"


# The manifest

many(
    "members of the manifest",
    "integrity/malformed",
    {
        "a_note_in_the_manifest": of_manifest(lambda said: {**said, "by": "ann"}),
        "no_counts": of_manifest(lambda said: {key: said[key] for key in said if key != "counts"}),
        "seeded_is_a_word": of_manifest(lambda said: {**said, "seeded": "no"}),
        "a_negative_count": of_counts(records=-40),
        "a_count_of_words": of_counts(records="40"),
        "a_fraction_of_a_record": of_counts(records=40.0),
        "one_more_count": of_counts(people=40),
        "a_hash_that_is_a_number": of_manifest(lambda said: {**said, "files": {"release.parquet": 7}}),
    },
)
many(
    "the files of the manifest",
    "integrity/file-names",
    {
        "another_file": of_manifest(lambda said: {**said, "files": {"other.parquet": "0" * 64}}),
        "a_second_file": of_manifest(lambda said: {**said, "files": {**said["files"], "raw.csv": "0" * 64}}),
        "a_file_elsewhere": of_manifest(lambda said: {**said, "files": {"../release.parquet": "0" * 64}}),
    },
)
many(
    "the hash",
    "integrity/hash",
    {
        "a_hash_of_nothing": of_manifest(lambda said: {**said, "files": {"release.parquet": ""}}),
        "a_hash_in_capitals": of_manifest(
            lambda said: {**said, "files": {name: sha.upper() for name, sha in said["files"].items()}}
        ),
        "a_hash_with_a_blank": of_manifest(
            lambda said: {**said, "files": {name: sha + " " for name, sha in said["files"].items()}}
        ),
    },
)
many(
    "the manifest contradicts the file",
    "integrity/contradiction",
    {
        "a_manifest_that_claims_more": of_manifest(
            lambda said: {**said, "shoal": {**said["shoal"], "claim": {"name": "k-anonymity", "k": 9}}}
        ),
        "a_manifest_with_another_grid": of_manifest(lambda said: {**said, "shoal": {**said["shoal"], "cell_m": 50}}),
        "a_manifest_that_says_true_for_one": of_manifest(
            lambda said: {**said, "shoal": {**said["shoal"], "format": True}}
        ),
    },
)
many(
    "counts that are false",
    "integrity/samples",
    {"fewer_samples": of_counts(samples_published=310), "more_samples": of_counts(samples_published=330)},
)
lie("another number of records", "integrity/records")(of_counts(records=41))
lie("exact counts", "leaks/exact-counts")(of_counts(samples_published=321))
lie("samples were created", "truth/samples-created")(of_counts(samples_created=5))
lie("loss that is stated and did not happen", "suppression/not-as-stated", blind=False)(
    of_counts(samples_suppressed=10, samples_published=310)
)
lie("more loss than anybody accepts", "suppression/stated-too-many")(
    of_counts(samples_suppressed=200, samples_published=120)
)


@lie("a seed that everybody can guess", "integrity/seeded", RING)
def a_seed_and_a_claim(draft):
    draft.seeded = True


# The audit

many(
    "people who are not there",
    "audit/unknown-person",
    {
        "a_member_who_is_nobody": of_audit(lambda rows: [*rows[:-1], (*rows[-1][:2], "nobody")]),
        "an_owner_who_is_nobody": of_audit(lambda rows: [(rows[0][0], "nobody", rows[0][2]), *rows[1:]]),
        "labels_with_a_blank": of_audit(lambda rows: [(n, owner + " ", member) for n, owner, member in rows]),
    },
    blind=False,
)
for key, code, edit in (
    ("a record that is not there", "audit/unknown-record", lambda rows: [*rows, (999, rows[0][1], rows[0][1])]),
    ("a negative record", "audit/unknown-record", lambda rows: [*rows, (-1, rows[0][1], rows[0][1])]),
    ("a row twice", "audit/repeated-member", lambda rows: [*rows, rows[0]]),
    ("a record without an owner", "audit/no-owner", lambda rows: [row for row in rows if row[0] != 3]),
    (
        "an owner who is no member",
        "audit/owner-not-member",
        lambda rows: [r for r in rows if r[0] != 3 or r[1] != r[2]],
    ),
    ("published and left out", "audit/both-or-twice", lambda rows: [*rows, (None, rows[0][1], rows[0][1])]),
    ("a member of no record", "audit/no-record", lambda rows: [*rows, (None, rows[0][1], rows[-1][1])]),
):
    edited = of_audit(edit)
    edited.__name__ = key.replace(" ", "_")
    lie("rows of the audit", code, blind=False)(edited)


@lie("others than the audit says are in the record", "truth/member-outside", blind=False)
def an_audit_of_exchanged_groups(draft):
    groups = sorted({tuple(sorted(record.members)) for record in draft.records})
    for record in draft.records:
        place = groups.index(tuple(sorted(record.members)))
        if place < 2:
            record.members = [record.owner, *groups[1 - place][1:]]


# Text


def of_text(old, new, count=1):
    def edit(data):
        assert old in data
        return data.replace(old, new, count)

    return of_bytes(edit)


for key, code, craft in (
    ("a quote", "leaks/stray-bytes", of_text(b"\n0,", b'\n"0",')),
    ("a mark of the byte order", "leaks/stray-bytes", of_bytes(lambda data: b"\xef\xbb\xbf" + data)),
    ("a carriage return", "leaks/stray-bytes", of_text(b"\n", b"\r\n")),
    ("no last line end", "leaks/stray-bytes", of_bytes(lambda data: data[:-1])),
    ("a plus sign", "leaks/value-form", of_text(b",116.", b",+116.")),
    ("a leading zero", "leaks/value-form", of_text(b",116.", b",0116.")),
    ("a blank", "leaks/value-form", of_text(b",116.", b", 116.")),
    ("another way to write a time", "leaks/value-form", of_text(b".000Z", b".0000Z")),
    ("an offset for Z", "leaks/value-form", of_text(b".000Z", b"+00:00")),
    ("more zeros", "leaks/number-form", of_bytes(lambda data: re.sub(rb"(,40[.]\d+)", rb"\g<1>0", data, count=1))),
    ("a comment", "cannot", of_bytes(lambda data: data + b"# ann\n")),
    ("one more value in a row", "cannot", of_bytes(lambda data: data[:-1] + b",ann\n")),
    ("a zero byte", "leaks/columns", of_text(b"uid", b"u\x00d")),
    ("a name in quotes", "leaks/stray-bytes", of_text(b"uid", b'"uid"')),
):  # fmt: skip
    craft.__name__ = f"text_with_{key.replace(' ', '_')}"
    lie("text that carries something", code, name="release.csv")(craft)

for key, craft in (
    ("an encrypted footer", of_bytes(encrypted)),
    ("half a file", of_bytes(lambda data: data[: len(data) // 2])),
    ("another file behind it", of_bytes(lambda data: data + b"ann")),
    ("text for Parquet", of_bytes(lambda data: b"uid\n0\n")),
):
    craft.__name__ = key.replace(" ", "_")
    lie("what can't be read", "cannot")(craft)


# Honest in another form


def honest(craft):
    return lie("nothing: it is honest", None)(craft)


@honest
def as_it_is(draft):
    pass


many(
    "nothing: other codecs",
    None,
    {
        f"compressed_by_{codec}": of_bytes(again(compression=codec))
        for codec in ("none", "gzip", "zstd", "lz4", "brotli")
    },
)
many(
    "nothing: other row groups, no dictionaries, geometry",
    None,
    {
        "in_small_row_groups": of_bytes(again(row_group_size=10)),
        "without_dictionaries": of_bytes(again(use_dictionary=False)),
        "with_geometry": with_polygons(GEO),
    },
)
lie("nothing: as text", None, name="release.csv")(of_bytes(lambda data: data))


@honest
def of_a_seed(draft):
    draft.seeded = True


@lie("nothing: cover", None, RING)
def an_honest_ring(draft):
    pass


@lie("nothing: research", None, RING)
def an_honest_ring_of_a_seed(draft):
    draft.seeded, draft.claim = True, {"name": "none", "why": "research"}


for place in range(5):

    def in_another_order(draft, seed=place):
        random.Random(seed).shuffle(draft.records)

    in_another_order.__name__ = f"in_another_order_{place}"
    honest(in_another_order)


def judged(path, audit):
    try:
        return verify(PEOPLE, path, audit=audit)
    except CannotCheck:
        return None


@pytest.mark.parametrize("key", CASES)
def test_a_crafted_release(key, tmp_path):
    start, craft, code, blind, name = CASES[key]
    draft = start.copy()
    craft(draft)
    path, audit = draft.write(tmp_path, name)
    for shown in (audit, None):
        verdict = judged(path, shown)
        if code == "cannot":
            assert verdict is None
        elif verdict is None:  # the original has no place on a grid that makes no sense
            findings = Findings()
            check_header(findings, draft.shoal())
            assert code in findings.codes
        elif code is None:
            assert verdict.ok, verdict.messages
        elif shown is None:
            assert not blind or not verdict.ok
            assert not blind or code in verdict.codes, verdict.codes
        else:
            assert not verdict.ok
            assert code in verdict.codes or blind, verdict.codes  # with the audit, another code may say it


def test_there_are_many():
    assert len(CASES) >= 150
    assert len({code for _, _, code, _, _ in CASES.values()}) >= 60


# The rows as other programs write them: no longer a file of shoal, but the rows keep the claim


def by_duckdb(table, path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as base:
        base.execute("SET TimeZone = 'UTC'")
        base.register("rows", table)
        base.execute(f"COPY rows TO '{path}' (FORMAT parquet, COMPRESSION zstd)")


def by_polars(table, path):
    pytest.importorskip("polars").from_arrow(table).write_parquet(path)


def by_pandas(table, path):
    pytest.importorskip("pandas")
    table.to_pandas().to_parquet(path)


@pytest.mark.parametrize("write", [by_duckdb, by_polars, by_pandas])
def test_other_programs_write_the_rows(write, tmp_path):
    table, path = GROUPS.table(), tmp_path / "rows.parquet"
    write(table, path)
    (tmp_path / "README.txt").write_text("a note beside")
    how = {"claim": Claim("k-anonymity", k=K)}
    verdict = verify(PEOPLE, path, **how)
    assert verdict.ok, verdict.messages
    assert NOT_CHECKED["form"] in verdict.not_checked
    write(table.append_column("name", pa.array(["ann"] * len(table))), path)
    assert verify(PEOPLE, path, **how).codes == ("leaks/foreign-columns",)
    write(one(table, "lat", 5, HOME), path)
    assert verify(PEOPLE, path, **how).codes == ("leaks/places",)
    write(one(table, "x_max", 5, at(table, "x_max", 5) + 37), path)
    assert "leaks/off" in verify(PEOPLE, path, **how).codes
