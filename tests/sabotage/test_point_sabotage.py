"""Broken releases of points: each kind is caught, and the untouched ones pass."""

import hashlib
import json
import struct

import geopandas
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import CannotCheck, SettingsError
from shoal.seen.codes import NOT_CHECKED, PROBLEMS
from tests.tracks import GEOD, table_of, walk

EPSILON = 0.02


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Forty people, a noisy and a smoothed release of them, and their audits."""
    folder = tmp_path_factory.mktemp("points")
    pq.write_table(table_of({100 + n: walk(n, fixes=200) for n in range(40)}), folder / "in.parquet")
    traces = shoal.read_traces(folder / "in.parquet")
    made = {
        "noisy": shoal.GeoIndistinguishability(epsilon=EPSILON).anonymize(traces),
        "smooth": shoal.Promesse(step=100).anonymize(traces),
    }
    for name, release in made.items():
        release.write(folder / f"{name}.parquet", audit=folder / f"{name}-audit.parquet")
    made["smooth"].write(folder / "smooth.csv")
    return folder


def rewritten(folder, name, tmp_path, *, table=None, shoal_object=None, manifest=None, stale=False):
    """Write a release again with something changed, as somebody would who knows the format."""
    old = pq.read_table(folder / f"{name}.parquet")
    public = json.loads(old.schema.metadata[b"shoal"])
    public = shoal_object(public) if shoal_object else public
    new = table(old.replace_schema_metadata(None)) if table else old
    path = tmp_path / "r.parquet"
    extra = new.schema.metadata or {}
    extra = {key: value for key, value in extra.items() if key != b"shoal"}
    pq.write_table(new.replace_schema_metadata({**extra, "shoal": json.dumps(public)}), path, compression="zstd")
    said = json.loads((folder / f"{name}.parquet.manifest.json").read_text())
    said |= {"shoal": public, "files": {"r.parquet": hashlib.sha256(path.read_bytes()).hexdigest()}}
    if stale:
        said["files"]["r.parquet"] = "0" * 64
    said = manifest(said) if manifest else said
    path.with_name("r.parquet.manifest.json").write_text(json.dumps(said))
    return path


def check(folder, name, path):
    return shoal.verify(folder / "in.parquet", path, audit=folder / f"{name}-audit.parquet")


def put(table, name, values, kind=None):
    place = table.column_names.index(name)
    return table.set_column(place, name, pa.array(values, kind or table[name].type))


def columns(table):
    return {name: table[name].to_numpy().copy() for name in table.column_names}


def true_places(folder, table):
    """The fixes that the points of a noisy release stand for, in the order of its rows."""
    audit = pq.read_table(folder / "noisy-audit.parquet")
    owner = dict(zip(audit["record"].to_pylist(), audit["owner"].to_pylist(), strict=True))
    original = pq.read_table(folder / "in.parquet").to_pandas().sort_values(["uid", "datetime"], kind="stable")
    of = {str(uid): rows for uid, rows in original.groupby("uid")}
    rows = [of[owner[uid]] for uid in sorted(set(table["uid"].to_pylist()))]
    return np.concatenate([r["lat"] for r in rows]), np.concatenate([r["lng"] for r in rows])


@pytest.mark.parametrize("name", ["noisy", "smooth"])
def test_the_untouched_ones_hold(folder, tmp_path, name):
    verdict = check(folder, name, rewritten(folder, name, tmp_path))
    assert verdict.ok, verdict.messages
    assert str(verdict.shown).partition("(")[0] == {"noisy": "geo-indistinguishability", "smooth": "none"}[name]
    assert verdict.figures["points"] == pq.read_metadata(folder / f"{name}.parquet").num_rows


def swap_rows(table):
    order = np.arange(len(table))
    order[[3, 4]] = 4, 3
    return table.take(order)


def last_of(table, uid):
    rows = np.flatnonzero(columns(table)["uid"] == uid)
    return np.arange(len(table)) == rows[-1]


def with_row(table, name, row, value):
    return put(table, name, np.where(np.arange(len(table)) == row, value, columns(table)[name]))


def narrower(table):
    kept = [table.schema.field(name) for name in ("datetime", "lat", "lng")]
    return table.cast(pa.schema([("uid", pa.int32()), *kept]))


TABLES = {
    "an extra column": (lambda t: t.append_column("name", t["lat"]), "columns", {"missing": 6, "extra": 1}),
    "columns in another order": (lambda t: t.select(["uid", "datetime", "lng", "lat"]), "point-columns", None),
    "more decimals": (lambda t: put(t, "lat", columns(t)["lat"] + 1e-10), "fine-points", None),
    "a place off the Earth": (lambda t: with_row(t, "lat", 5, 95.0), "wild-points", {"n": 1}),
    "a time of no year": (
        lambda t: put(t, "datetime", np.where(last_of(t, 0), 2**60, columns(t)["datetime"].astype("i8"))),
        "wild-points",
        {"n": 1},
    ),
    "no number": (lambda t: with_row(t, "lng", 5, np.nan), "not-numbers", {"n": 1}),
    "a missing value": (lambda t: put(t, "lng", [None, *columns(t)["lng"][1:].tolist()]), "missing-values", {"n": 1}),
    "numbers with a gap": (lambda t: put(t, "uid", columns(t)["uid"] + (columns(t)["uid"] > 3)), "numbering", None),
    "rows out of order": (swap_rows, "unsorted", None),
    "another type": (narrower, "column-types", {"n": 1}),
    "metadata": (lambda t: t.replace_schema_metadata({"by": "me"}), "metadata-keys", {"n": 1}),
}


@pytest.mark.parametrize("kind", TABLES)
def test_leaks(folder, tmp_path, kind):
    broken, code, facts = TABLES[kind]
    verdict = check(folder, "smooth", rewritten(folder, "smooth", tmp_path, table=broken))
    assert f"leaks/{code}" in verdict.codes
    assert facts is None or PROBLEMS[f"leaks/{code}"].format(**facts) in verdict.problems


def as_geo(table, *, spoil=lambda places: places, first=None, keep=None, **column):
    """Add the points as geometry, as `--geo` does; something about them may be wrong."""
    places = spoil(np.stack([columns(table)["lng"], columns(table)["lat"]], axis=1))
    values = [struct.pack("<BIdd", 1, 1, *place) for place in places.tolist()]
    values[0] = values[0] if first is None else first(values[0])
    geo = {"encoding": "WKB", "geometry_types": ["Point"], **column}
    geo = {"version": "1.1.0", "primary_column": "geometry", "columns": {"geometry": geo}}
    table = table.append_column("geometry", pa.array(values, pa.binary()))
    return table.replace_schema_metadata({"geo": json.dumps(geo)} if keep is None else keep)


GEOMETRIES = {
    "a finer place": ({"spoil": lambda places: places + 1e-9}, "geometry-corners"),
    "the axes exchanged": ({"spoil": lambda places: places[:, ::-1]}, "geometry-corners"),
    "one other place": ({"first": lambda value: struct.pack("<BIdd", 1, 1, 1.0, 2.0)}, "geometry-corners"),
    "a height": ({"first": lambda value: struct.pack("<BIddd", 1, 1001, 1.0, 2.0, 3.0)}, "geometry-form"),
    "another byte order": ({"first": lambda value: struct.pack(">BIdd", 0, 1, 1.0, 2.0)}, "geometry-form"),
    "no geometry": ({"first": lambda value: b""}, "geometry-form"),
    "more in the metadata": ({"note": "x"}, "geo-metadata"),
    "another type in the metadata": ({"geometry_types": ["Polygon"]}, "geo-metadata"),
    "no metadata": ({"keep": {}}, "geometry-alone"),
}


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_geometry_is_the_point_and_nothing_else(folder, tmp_path, kind):
    change, code = GEOMETRIES[kind]
    broken = rewritten(folder, "smooth", tmp_path, table=lambda table: as_geo(table, **change))
    assert f"leaks/{code}" in check(folder, "smooth", broken).codes


def test_plain_geometry_holds(folder, tmp_path):
    whole = check(folder, "smooth", rewritten(folder, "smooth", tmp_path, table=as_geo))
    assert whole.ok, whole.messages


def test_geometry_in_another_place_or_text(folder, tmp_path):
    for order in (["geometry", "uid", "datetime", "lat", "lng"], ["uid", "datetime", "lng", "lat", "geometry"]):
        broken = rewritten(folder, "smooth", tmp_path, table=lambda table, order=order: as_geo(table).select(order))
        assert "leaks/point-columns" in check(folder, "smooth", broken).codes


@pytest.mark.parametrize("name", ["noisy", "smooth"])
def test_releases_with_geometry_hold(folder, tmp_path, name):
    method = {"noisy": shoal.GeoIndistinguishability(epsilon=EPSILON), "smooth": shoal.Promesse(step=100)}[name]
    release = method.anonymize(shoal.read_traces(folder / "in.parquet"))
    published = release.write(tmp_path / "g.parquet", audit=tmp_path / "a.parquet", geo=True)
    verdict = shoal.verify(folder / "in.parquet", tmp_path / "g.parquet", audit=tmp_path / "a.parquet")
    assert verdict.ok, verdict.messages
    assert pq.read_schema(tmp_path / "g.parquet").names == ["uid", "datetime", "lat", "lng", "geometry"]
    back = shoal.read_release(tmp_path / "g.parquet")
    assert back.to_arrow().equals(published.to_arrow())
    points = geopandas.read_parquet(tmp_path / "g.parquet")
    assert points.geometry.x.equals(points.lng)
    assert points.geometry.y.equals(points.lat)
    assert points.crs == "OGC:CRS84"
    assert release.to_geopandas().geometry.geom_type.eq("Point").all()


TEXTS = {
    "a plus sign": ("116.", "+116.", "value-form"),
    "a leading zero": ("116.", "0116.", "value-form"),
    "a space": (",116.", ", 116.", "value-form"),
    "a longer end of a line": ("\n", "\r\n", "stray-bytes"),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_leaks_in_text(folder, tmp_path, kind):
    before, after, code = TEXTS[kind]
    text = (folder / "smooth.csv").read_text().replace(before, after, 1)
    (tmp_path / "smooth.csv").write_text(text)
    stated = json.loads((folder / "smooth.csv.manifest.json").read_text())
    stated["files"] = {"smooth.csv": hashlib.sha256(text.encode()).hexdigest()}
    (tmp_path / "smooth.csv.manifest.json").write_text(json.dumps(stated))
    verdict = shoal.verify(folder / "in.parquet", tmp_path / "smooth.csv")
    assert f"leaks/{code}" in verdict.codes


def test_an_untouched_text_holds(folder):
    assert shoal.verify(folder / "in.parquet", folder / "smooth.csv").ok


def numbered(table, number):
    """Give records other numbers."""
    table = put(table, "uid", [number[uid] for uid in table["uid"].to_pylist()])
    return table.take(np.lexsort((table["datetime"].to_numpy(), table["uid"].to_numpy())))


@pytest.mark.parametrize(
    ("what", "key"),
    [
        ("when they begin", lambda rows: rows["datetime"].iloc[0]),
        ("when they end", lambda rows: rows["datetime"].iloc[-1]),
        ("how many points they have", len),
        ("where they begin", lambda rows: rows["lng"].iloc[0]),
        ("where they begin (second axis)", lambda rows: rows["lat"].iloc[0]),
    ],
)
def test_numbers_that_follow_the_records(folder, tmp_path, what, key):
    def table(t):
        of = {uid: key(rows) for uid, rows in t.to_pandas().groupby("uid")}
        return numbered(t, {uid: n for n, uid in enumerate(sorted(of, key=of.get))})

    verdict = shoal.verify(folder / "in.parquet", rewritten(folder, "smooth", tmp_path, table=table))
    assert verdict.failures == ("leaks",)
    assert PROBLEMS["leaks/order"].format(what=what) in verdict.problems


def noise(lat, lng, epsilon, seed=1, *, stretch=1.0, fixed=False):
    chance = np.random.default_rng(seed)
    n = 1 if fixed else len(lat)
    angle, radius = chance.uniform(0, 2 * np.pi, n), chance.gamma(2, 1 / epsilon, n)
    north, east = radius * np.cos(angle), radius * np.sin(angle) * stretch
    return np.round(lat + north / 111_040, 7), np.round(lng + east / (111_320 * np.cos(np.radians(lat))), 7)


NOISE = {
    "none at all": lambda lat, lng: (np.round(lat, 7), np.round(lng, 7)),
    "half as much": lambda lat, lng: noise(lat, lng, 2 * EPSILON),
    "a tenth less": lambda lat, lng: noise(lat, lng, EPSILON / 0.9),
    "flat": lambda lat, lng: noise(lat, lng, EPSILON, stretch=0.6),
    "always the same": lambda lat, lng: noise(lat, lng, EPSILON, fixed=True),
}


def moved(folder, tmp_path, noise):
    """Return the verdict on a release whose points are where `noise` puts the true places."""

    def table(t):
        lat, lng = noise(*true_places(folder, t))
        return put(put(t, "lat", lat), "lng", lng)

    return check(folder, "noisy", rewritten(folder, "noisy", tmp_path, table=table))


@pytest.mark.parametrize("kind", NOISE)
def test_wrong_noise(folder, tmp_path, kind):
    assert moved(folder, tmp_path, NOISE[kind]).failures == ("noise",)


def test_right_noise_of_another_make_passes(folder, tmp_path):
    assert moved(folder, tmp_path, lambda lat, lng: noise(lat, lng, EPSILON)).ok


@pytest.mark.parametrize(("name", "later"), [("noisy", (1, "s")), ("smooth", (1, "D"))])
def test_times_that_are_no_fixes(folder, tmp_path, name, later):
    def table(t):
        return put(t, "datetime", columns(t)["datetime"] + np.timedelta64(*later))

    assert "truth/outside-time" in check(folder, name, rewritten(folder, name, tmp_path, table=table)).codes


def test_records_in_the_order_of_their_owners(folder, tmp_path):
    audit = pq.read_table(folder / "smooth-audit.parquet").to_pandas().sort_values("owner")
    number = {record: n for n, record in enumerate(audit["record"])}
    path = rewritten(folder, "smooth", tmp_path, table=lambda t: numbered(t, number))
    audit["record"] = range(len(audit))
    pq.write_table(pa.Table.from_pandas(audit, preserve_index=False), tmp_path / "a.parquet")
    verdict = shoal.verify(folder / "in.parquet", path, audit=tmp_path / "a.parquet")
    assert verdict.failures == ("leaks",)


def counts(manifest, **changed):
    return {**manifest, "counts": {**manifest["counts"], **changed}}


@pytest.mark.parametrize(
    ("name", "change", "codes"),
    [
        ("noisy", {"stale": True}, {"integrity/hash"}),
        ("noisy", {"shoal_object": lambda p: p | {"claim": p["claim"] | {"total_per_m": EPSILON}}}, {"noise/total"}),
        ("noisy", {"shoal_object": lambda p: p | {"parameters": {"epsilon_per_m": 0.5}}}, {"leaks/header-differs"}),
        (
            "smooth",
            {"shoal_object": lambda p: p | {"parameters": {"step_m": 100, "note": "ann"}}},
            {"leaks/header-parameters"},
        ),
        (
            "smooth",
            {"manifest": lambda m: counts(m, samples_published=123_457)},
            {"leaks/exact-counts", "integrity/records-and-points"},
        ),
    ],
    ids=["hash", "total", "other epsilon", "note", "exact counts"],
)
def test_the_manifest_and_the_claim(folder, tmp_path, name, change, codes):
    assert codes <= set(check(folder, name, rewritten(folder, name, tmp_path, **change)).codes)


def test_no_more_points_are_created_than_published(folder, tmp_path):
    def created(manifest):
        return counts(manifest, samples_created=10 * manifest["counts"]["samples_published"])

    verdict = check(folder, "smooth", rewritten(folder, "smooth", tmp_path, manifest=created))
    assert verdict.codes == ("integrity/points-created",)


def test_a_manifest_that_is_missing(folder, tmp_path):
    path = rewritten(folder, "smooth", tmp_path)
    path.with_name("r.parquet.manifest.json").unlink()
    assert "integrity/no-manifest" in check(folder, "smooth", path).codes


def test_claims_that_points_can_not_hold(folder, tmp_path):
    def brave(public):
        return public | {"claim": {"name": "k-anonymity", "k": 3}}

    path = rewritten(folder, "smooth", tmp_path, shoal_object=brave)
    with pytest.raises(CannotCheck, match="points, not boxes"):
        check(folder, "smooth", path)
    with pytest.raises(CannotCheck, match="points, not boxes"):
        shoal.verify(folder / "in.parquet", folder / "smooth.parquet", k=2)
    with pytest.raises(SettingsError, match="its own claim"):
        shoal.verify(folder / "in.parquet", folder / "smooth.parquet", claim=shoal.Claim("cover", k=2))
    with pytest.raises(CannotCheck, match="fixes"):
        shoal.verify(shoal.read(folder / "in.parquet"), folder / "smooth.parquet")


@pytest.mark.parametrize(
    ("raw", "off"),
    [
        (lambda uid: uid == 7, 0.0),  # one of forty people
        (lambda uid: uid == 7, 2e-5),  # two metres beside
        (lambda uid: np.arange(len(uid)) % 50 == 0, 0.0),  # one point in fifty
    ],
    ids=range(3),
)
def test_places_that_were_left_as_they_are(folder, tmp_path, raw, off):
    """Too few to show in the distribution of all distances."""

    def table(t):
        found, here = columns(t), true_places(folder, t)
        chosen = raw(found["uid"])
        lat, lng = (
            np.where(chosen, np.round(true + off, 7), found[name])
            for true, name in zip(here, ("lat", "lng"), strict=True)
        )
        return put(put(t, "lat", lat), "lng", lng)

    verdict = check(folder, "noisy", rewritten(folder, "noisy", tmp_path, table=table))
    assert verdict.failures == ("noise",)
    assert "noise/true-places" in verdict.codes


def test_fixes_without_a_point_are_counted(folder, tmp_path):
    def table(t):
        uid = columns(t)["uid"]
        return t.filter(pa.array(np.arange(len(uid)) - np.searchsorted(uid, uid) < 100))

    for suppressed, fails in ((0, True), (3900, True), (4000, False), (4100, True)):
        stated = {"samples_published": 4000, "samples_suppressed": suppressed}
        how = {"table": table, "manifest": lambda manifest, stated=stated: counts(manifest, **stated)}
        verdict = check(folder, "noisy", rewritten(folder, "noisy", tmp_path, **how))
        assert set(verdict.failures) == ({"suppression"} if fails else set())


def test_an_audit_of_other_people(folder, tmp_path):
    audit = pq.read_table(folder / "smooth-audit.parquet")
    shuffled = audit.set_column(0, "record", pa.array(np.roll(audit["record"].to_numpy(), 1)))
    verdict = shoal.verify(folder / "in.parquet", folder / "smooth.parquet", audit=shuffled)
    assert not verdict.ok
    fewer = shoal.verify(folder / "in.parquet", folder / "smooth.parquet", audit=audit.slice(1))
    assert fewer.failures == ("audit",)
    twice = pa.concat_tables([audit, audit.slice(0, 1)])
    assert shoal.verify(folder / "in.parquet", folder / "smooth.parquet", audit=twice).failures == ("audit",)


# What Promesse makes of its step


@pytest.fixture(scope="module")
def walks(folder):
    """The owner's fixes of each record of the smooth release, and its points, as (ms, lng, lat)."""
    audit = pq.read_table(folder / "smooth-audit.parquet").to_pandas().dropna().set_index("record")["owner"]
    people = dict(list(pq.read_table(folder / "in.parquet").to_pandas().groupby("uid")))
    rows = pq.read_table(folder / "smooth.parquet").to_pandas()

    def places(frame):
        ms = frame["datetime"].astype("int64").to_numpy()
        return list(zip(ms.tolist(), frame["lng"].tolist(), frame["lat"].tolist(), strict=True))

    return [(places(people[int(audit[uid])]), places(points)) for uid, points in rows.groupby("uid")]


def spread_evenly(points, ms=None):
    first, last = (points[0][0], points[-1][0]) if ms is None else ms
    share = (last - first) / max(len(points) - 1, 1)
    return [(first + int(n * share + 0.5), *where) for n, (_, *where) in enumerate(points)]


def shifted_fixes(fixes, points):
    """Somebody else's route: the own one, shifted to the east."""
    return [(ms, lng + 0.05, lat) for ms, lng, lat in points]


def reached(fixes, points):
    """The walk goes on to the very end: the point that is dropped is published."""
    at = next(n for n, fix in enumerate(fixes) if fix[0] == points[-1][0])
    for ms, lng, lat in fixes[at:]:
        angle, _, away = GEOD.inv(*points[-1][1:], lng, lat)
        if away >= 100:
            place = [round(degrees, 7) for degrees in GEOD.fwd(*points[-1][1:], angle, 100)[:2]]
            return spread_evenly([*points, (ms, *place)], (points[0][0], ms))
    raise AssertionError


WALKS = {
    "raw fixes": (lambda fixes, points: fixes, {"steps/distances", "steps/times"}),
    "raw fixes, evenly in time": (lambda fixes, points: spread_evenly(fixes), {"steps/distances"}),
    "true times": (
        lambda fixes, points: [(fixes[n + 1][0], *where) for n, (_, *where) in enumerate(points[:50])],
        {"steps/times"},
    ),
    "one point beside": (
        lambda fixes, points: [*points[:3], (points[3][0], points[3][1] + 1e-5, points[3][2]), *points[4:]],
        {"steps/distances"},
    ),
    "one time beside": (
        lambda fixes, points: [*points[:3], (points[3][0] + 1, *points[3][1:]), *points[4:]],
        {"steps/times"},
    ),
    "another route": (shifted_fixes, {"steps/beside-route"}),
    "the first fix": (
        lambda fixes, points: spread_evenly([fixes[0], *points], (fixes[0][0], points[-1][0])),
        {"steps/first-point"},
    ),
    "the last point": (reached, {"steps/last-point"}),
    "times of somebody else": (
        lambda fixes, points: [(ms + 3, *where) for ms, *where in points],
        {"steps/beside-route"},
    ),
}


@pytest.mark.parametrize("kind", WALKS)
def test_promesse_is_what_it_says(folder, walks, tmp_path, kind):
    spoil, codes = WALKS[kind]
    records = [spoil(*both) for both in walks]

    def table(t):
        rows = [(uid, *row) for uid, points in enumerate(records) for row in points]
        uid, ms, lng, lat = zip(*rows, strict=True)
        made = {"uid": uid, "datetime": pa.array(ms, pa.int64()).cast(pa.timestamp("ms", "UTC"))}
        lat, lng = np.round(lat, 7), np.round(lng, 7)
        return pa.table({**made, "lat": lat, "lng": lng})

    def right(manifest):
        number = int(float(f"{sum(map(len, records)):.1e}"))
        return counts(manifest, samples_published=number, samples_created=number)

    verdict = check(folder, "smooth", rewritten(folder, "smooth", tmp_path, table=table, manifest=right))
    assert set(verdict.codes) == codes


def test_promesse_states_its_step(folder, tmp_path):
    for parameters, code in (({}, "steps/unstated"), ({"step_m": 101}, "steps/distances")):
        path = rewritten(folder, "smooth", tmp_path, shoal_object=lambda p, own=parameters: p | {"parameters": own})
        assert check(folder, "smooth", path).codes == (code,)


@pytest.mark.parametrize("method", ["shoal", "uniform", "glove"])
def test_methods_of_boxes_make_no_points(folder, tmp_path, method):
    path = rewritten(folder, "smooth", tmp_path, shoal_object=lambda p: p | {"method": method, "parameters": {}})
    assert check(folder, "smooth", path).codes == ("leaks/header-rows",)


def test_noise_with_a_seed_is_noise(folder, tmp_path):
    """A release with a seed claims nothing, but its points are not the true places."""

    def research(public):
        return public | {"claim": {"name": "none", "why": "research"}}

    path = rewritten(folder, "noisy", tmp_path, shoal_object=research)
    assert check(folder, "noisy", path).ok
    assert NOT_CHECKED["noise"] in shoal.verify(folder / "in.parquet", path).not_checked

    def table(t):
        lat, lng = true_places(folder, t)
        return put(put(t, "lat", np.round(lat, 7)), "lng", np.round(lng, 7))

    path = rewritten(folder, "noisy", tmp_path, shoal_object=research, table=table)
    assert check(folder, "noisy", path).failures == ("noise",)
