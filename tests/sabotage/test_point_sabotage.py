"""Broken releases of points: each kind is caught, and the untouched ones pass."""

import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import CannotCheck, SettingsError
from tests.tracks import table_of, walk

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


TABLES = {
    "an extra column": (lambda t: t.append_column("name", pa.array(["x"] * len(t))), "1 are too many"),
    "columns in another order": (lambda t: t.select(["uid", "datetime", "lng", "lat"]), "in its order"),
    "more decimals": (lambda t: put(t, "lat", columns(t)["lat"] + 1e-10), "seven decimals"),
    "a place off the Earth": (
        lambda t: put(t, "lat", np.where(np.arange(len(t)) == 5, 95.0, columns(t)["lat"])),
        "1 points have values that are missing or out of range",
    ),
    "a time of no year": (
        lambda t: put(t, "datetime", np.where(last_of(t, 0), 2**60, columns(t)["datetime"].astype("i8"))),
        "1 points have values that are missing or out of range",
    ),
    "no number": (
        lambda t: put(t, "lng", np.where(np.arange(len(t)) == 5, np.nan, columns(t)["lng"])),
        "1 values are not numbers",
    ),
    "a missing value": (lambda t: put(t, "lng", [None, *columns(t)["lng"][1:].tolist()]), "1 values are missing"),
    "numbers with a gap": (lambda t: put(t, "uid", columns(t)["uid"] + (columns(t)["uid"] > 3)), "without gaps"),
    "rows out of order": (swap_rows, "not sorted"),
    "another type": (
        lambda t: put(t, "uid", columns(t)["uid"].astype(np.int32), pa.int32()).cast(
            pa.schema([("uid", pa.int32()), *[t.schema.field(n) for n in ("datetime", "lat", "lng")]])
        ),
        "1 columns do not have the type",
    ),
    "metadata": (lambda t: t.replace_schema_metadata({"by": "me"}), "1 metadata keys"),
}


@pytest.mark.parametrize("kind", TABLES)
def test_leaks(folder, tmp_path, kind):
    broken, said = TABLES[kind]
    verdict = check(folder, "smooth", rewritten(folder, "smooth", tmp_path, table=broken))
    assert "leaks" in verdict.failures
    assert said in " ".join(verdict.messages)


TEXTS = {
    "a plus sign": (("116.", "+116."), "not written as the format says"),
    "a leading zero": (("116.", "0116."), "not written as the format says"),
    "a space": ((",116.", ", 116."), "not written as the format says"),
    "a longer end of a line": (("\n", "\r\n"), "bytes that are no part of its columns"),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_leaks_in_text(folder, tmp_path, kind):
    made = shoal.Promesse(step=100).anonymize(shoal.read_traces(folder / "in.parquet"))
    made.write(tmp_path / "r.csv")
    assert shoal.verify(folder / "in.parquet", tmp_path / "r.csv").ok
    (before, after), said = TEXTS[kind]
    text = (tmp_path / "r.csv").read_text().replace(before, after, 1)
    (tmp_path / "r.csv").write_text(text)
    manifest = tmp_path / "r.csv.manifest.json"
    stated = json.loads(manifest.read_text())
    stated["files"] = {"r.csv": hashlib.sha256(text.encode()).hexdigest()}
    manifest.write_text(json.dumps(stated))
    verdict = shoal.verify(folder / "in.parquet", tmp_path / "r.csv")
    assert "leaks" in verdict.failures
    assert said in " ".join(verdict.messages)


@pytest.mark.parametrize(
    ("said", "key"),
    [
        ("when they begin", lambda rows: rows["datetime"].iloc[0]),
        ("when they end", lambda rows: rows["datetime"].iloc[-1]),
        ("how many points they have", len),
        ("where they begin.", lambda rows: rows["lng"].iloc[0]),
        ("second axis", lambda rows: rows["lat"].iloc[0]),
    ],
)
def test_numbers_that_follow_the_records(folder, tmp_path, said, key):
    def table(t):
        rows = t.to_pandas()
        order = sorted(rows["uid"].unique(), key=lambda uid: key(rows[rows["uid"] == uid]))
        number = {uid: n for n, uid in enumerate(order)}
        t = put(t, "uid", [number[uid] for uid in t["uid"].to_pylist()])
        return t.take(np.lexsort((t["datetime"].to_numpy(), t["uid"].to_numpy())))

    verdict = shoal.verify(folder / "in.parquet", rewritten(folder, "smooth", tmp_path, table=table))
    assert verdict.failures == ("leaks",)
    assert any(said in message for message in verdict.messages)


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


@pytest.mark.parametrize("kind", NOISE)
def test_wrong_noise(folder, tmp_path, kind):
    def table(t):
        lat, lng = NOISE[kind](*true_places(folder, t))
        return put(put(t, "lat", lat), "lng", lng)

    assert check(folder, "noisy", rewritten(folder, "noisy", tmp_path, table=table)).failures == ("noise",)


def test_right_noise_of_another_make_passes(folder, tmp_path):
    def table(t):
        lat, lng = noise(*true_places(folder, t), EPSILON)
        return put(put(t, "lat", lat), "lng", lng)

    assert check(folder, "noisy", rewritten(folder, "noisy", tmp_path, table=table)).ok


def test_times_that_are_no_fixes(folder, tmp_path):
    def later(t):
        return put(t, "datetime", columns(t)["datetime"] + np.timedelta64(1, "s"))

    assert "truth" in check(folder, "noisy", rewritten(folder, "noisy", tmp_path, table=later)).failures

    def tomorrow(t):
        return put(t, "datetime", columns(t)["datetime"] + np.timedelta64(1, "D"))

    assert "truth" in check(folder, "smooth", rewritten(folder, "smooth", tmp_path, table=tomorrow)).failures


def test_records_in_the_order_of_their_owners(folder, tmp_path):
    audit = pq.read_table(folder / "smooth-audit.parquet").to_pandas().sort_values("owner")
    number = {record: n for n, record in enumerate(audit["record"])}

    def table(t):
        t = put(t, "uid", [number[uid] for uid in t["uid"].to_pylist()])
        return t.take(np.lexsort((t["datetime"].to_numpy(), t["uid"].to_numpy())))

    path = rewritten(folder, "smooth", tmp_path, table=table)
    audit["record"] = range(len(audit))
    pq.write_table(pa.Table.from_pandas(audit, preserve_index=False), tmp_path / "a.parquet")
    verdict = shoal.verify(folder / "in.parquet", path, audit=tmp_path / "a.parquet")
    assert verdict.failures == ("leaks",)


def test_the_manifest_and_the_claim(folder, tmp_path):
    def total(public):
        return public | {"claim": public["claim"] | {"total_per_m": EPSILON}}

    def other(public):
        return public | {"parameters": {"epsilon_per_m": 0.5}}

    def label(public):
        return public | {"parameters": {"step_m": 100, "note": "ann"}}

    def exact(manifest):
        manifest["counts"]["samples_published"] = 123_457
        return manifest

    def created(manifest):
        manifest["counts"]["samples_created"] = 10 * manifest["counts"]["samples_published"]
        return manifest

    cases = {
        "integrity": rewritten(folder, "noisy", _folder(tmp_path, "1"), stale=True),
        "noise": rewritten(folder, "noisy", _folder(tmp_path, "2"), shoal_object=total),
        "leaks": rewritten(folder, "noisy", _folder(tmp_path, "3"), shoal_object=other),
    }
    for kind, path in cases.items():
        assert kind in check(folder, "noisy", path).failures, kind
    path = rewritten(folder, "smooth", _folder(tmp_path, "4"), shoal_object=label)
    assert "leaks" in check(folder, "smooth", path).failures
    path = rewritten(folder, "smooth", _folder(tmp_path, "5"), manifest=exact)
    assert {"leaks", "integrity"} <= set(check(folder, "smooth", path).failures)
    path = rewritten(folder, "smooth", _folder(tmp_path, "7"), manifest=created)
    assert check(folder, "smooth", path).failures == ("integrity",)
    path = rewritten(folder, "smooth", _folder(tmp_path, "6"))
    path.with_name("r.parquet.manifest.json").unlink()
    assert "integrity" in check(folder, "smooth", path).failures


def _folder(tmp_path, name):
    (tmp_path / name).mkdir()
    return tmp_path / name


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


KEPT = "More points are left at the true places than the claimed noise leaves there."


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
    assert KEPT in verdict.messages


def test_fixes_without_a_point_are_counted(folder, tmp_path):
    def table(t):
        uid = columns(t)["uid"]
        return t.filter(pa.array(np.arange(len(uid)) - np.searchsorted(uid, uid) < 100))

    def published(manifest, suppressed):
        manifest["counts"] |= {"samples_published": 4000, "samples_suppressed": suppressed}
        return manifest

    for suppressed, fails in ((0, True), (3900, True), (4000, False), (4100, True)):
        how = {"table": table, "manifest": lambda manifest, n=suppressed: published(manifest, n)}
        verdict = check(folder, "noisy", rewritten(folder, "noisy", _folder(tmp_path, str(suppressed)), **how))
        assert verdict.failures == (("suppression",) if fails else ())


def test_an_audit_of_other_people(folder, tmp_path):
    audit = pq.read_table(folder / "smooth-audit.parquet")
    shuffled = audit.set_column(0, "record", pa.array(np.roll(audit["record"].to_numpy(), 1)))
    verdict = shoal.verify(folder / "in.parquet", folder / "smooth.parquet", audit=shuffled)
    assert not verdict.ok
    fewer = shoal.verify(folder / "in.parquet", folder / "smooth.parquet", audit=audit.slice(1))
    assert fewer.failures == ("audit",)
    twice = pa.concat_tables([audit, audit.slice(0, 1)])
    assert shoal.verify(folder / "in.parquet", folder / "smooth.parquet", audit=twice).failures == ("audit",)
