"""What a release states and what is said of it: the header, the manifest, the verdict, and the order of the checks."""

import hashlib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shoal.claim import Claim
from shoal.errors import CannotCheck, NotVerified, SettingsError
from shoal.frame import is_public_crs, local_crs
from shoal.layouts import Points
from shoal.reading.options import ReadOptions
from shoal.release import Release
from shoal.run import Run
from shoal.seen.codes import NOT_CHECKED, NOTES, PROBLEMS
from shoal.seen.findings import Finding, Findings
from shoal.seen.grid import Grid
from shoal.seen.header import Header, parse_json, read_header, truth_level
from shoal.seen.manifest import read_manifest
from shoal.seen.opened import open_release
from shoal.traces import Traces
from shoal.verifier import boxes, check, measured, verify
from shoal.verifier.boxes import BoxSubject
from shoal.verifier.header import check_header
from shoal.verifier.integrity import check_counts, check_manifest, check_point_counts, rounding
from shoal.verifier.measured import with_measured_claim
from shoal.verifier.points import PointSubject
from shoal.verifier.subject import Given, Opened, declared_suppressed, open_stated
from shoal.verifier.verdict import Verdict
from shoal.verifier.windows import AskedWindows
from tests.releases import FRAME, in_memory, ring, toy_people

PEOPLE = toy_people(users=6, samples=4, seed=4)
COVER = Claim("cover", k=2)
NOTHING = Claim("none")
GRID = Grid(None, 500, 1800)
PROMISED = {"name": "cover", "k": 3}
ON_GRID = {"cell_m": 500, "slot_s": 1800, "crs": None}
STATED = {"format": 1, "method": "uniform", "parameters": {"k": 3}, "claim": PROMISED, **ON_GRID}


def findings_of(check, *given, **options):
    """Return what a check finds."""
    findings = Findings()
    check(findings, *given, **options)
    return findings


# The header


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"k": 3}', {"k": 3}),
        ('{"k": 3}\n', {"k": 3}),
        ('{\n  "k": 3\n}', {"k": 3}),
        ('{\n  "k": "é"\n}\n', {"k": "é"}),
        ('["\\u00e9"]', ["é"]),
        ('["é"]', ["é"]),
        ("0", 0),
        ("false", False),
    ],
)
def test_json_is_read_as_python_writes_it(text, value):
    assert parse_json(text.encode()) == value


def test_what_python_writes_otherwise_is_no_json():
    spaced = ['{"k": 3}\n\n', '{\n   "k": 3\n}', '{\n  "k": "\\u00e9"\n}', '{"k":3}']
    for text in (*spaced, "null", "{", "", "[" * 100_000):
        assert parse_json(text.encode()) == "not JSON"
    assert parse_json(b'"\xff"') == "not JSON"


def header(**change):
    return read_header({**STATED, **change})


def test_a_header_says_grid_claim_and_truth():
    claim = Claim("cover", k=3)
    assert header() == Header(GRID, claim, 3, None, None, "member")
    assert header(crs="EPSG:32650").grid == Grid("EPSG:32650", 500, 1800)
    assert header(cell_m=1, slot_s=2**31 - 1).grid == Grid(None, 1, 2**31 - 1)
    assert header(parameters=None) == header(parameters=[]) == header(parameters={}) == header()
    two_stage = {"method": "glove", "parameters": {"merge": "two-stage"}}
    for claim, level in (
        ({"name": "k-anonymity", "k": 3}, "group"),
        (PROMISED, "member"),
        ({"name": "none"}, "member"),
    ):
        assert header(**two_stage, claim=claim).truth == level
    assert header(method=None).truth == "member"


def test_what_the_claim_does_not_say_is_taken_from_the_parameters():
    said = {"k": 4, "tau_s": 60, "epsilon_s": 120}
    assert header(parameters=said) == Header(GRID, Claim("cover", k=3), 3, 60, 120)
    assert header(parameters=said, claim={"name": "none"}) == Header(GRID, NOTHING, 4, 60, 120)
    windows = {"name": "kte-anonymity", "k": 2, "tau_s": 6, "epsilon_s": 7}
    assert header(parameters=said, claim=windows) == Header(GRID, Claim(**windows), 2, 6, 7)
    assert header(parameters={}, claim={"name": "none"}) == Header(GRID, NOTHING, None)


NO_COUNT = [0, -1, 2**31, True, 1.0, "1", [1]]


@pytest.mark.parametrize(
    "change",
    [
        *({"format": value} for value in (None, 2, *NO_COUNT)),
        *({name: value} for name in ("cell_m", "slot_s") for value in (None, *NO_COUNT)),
        *({"claim": {"name": "none"}, "parameters": {"k": value}} for value in NO_COUNT if value),
        *({"parameters": {name: value}} for name in ("tau_s", "epsilon_s") for value in NO_COUNT if value),
        *({"crs": value} for value in (5, ["EPSG:32650"], False)),
        *(
            {"claim": value}
            for value in (None, "cover", [], {"name": "magic"}, {"name": "cover"}, {**PROMISED, "k": 0})
        ),
    ],
    ids=str,
)
def test_a_header_that_can_not_be_understood(change):
    assert header(**change) is None


def test_what_is_no_object_is_no_header():
    assert [read_header(stated) for stated in (None, "not JSON", [], 1, {})] == [None] * 5


def test_a_claim_may_have_keys_of_any_name():
    assert header(claim={"name": "cover", "k": 3, "cls": 1, "self": 2}) == header()


def test_the_level_of_truth():
    assert truth_level("glove", {"merge": "two-stage"}) == "group"
    for method, merge in (("glove", "k-merge"), ("glove", None), ("shoal", "two-stage"), (None, "two-stage")):
        assert truth_level(method, {"merge": merge}) == "member"


KEYS, CLAIM, METHOD, PARAMETERS, CRS, GRID_SIZE = (
    (f"leaks/header-{part}", None) for part in ("keys", "claim", "method", "parameters", "crs", "grid")
)
BOUNDS = [(40_000_000, []), (40_000_001, [PARAMETERS])]
WINDOWS = {"name": "kte-anonymity", "k": 2, "tau_s": 60, "epsilon_s": 90}
OWN = local_crs(116, 40)
KTE = {"method": "kte-hide", "claim": WINDOWS}
NOISE = {"method": "geo-indistinguishability", "claim": {"name": "geo-indistinguishability", "epsilon_per_m": 0.01}}
SHARE = {"name": "kte-cover", "k": 2, "tau_s": 60, "epsilon_s": 90}


def other(name):
    return ("leaks/header-differs", name)


def header_faults(stated):
    """Return the codes of what is wrong with a header, each with the name of the parameter that it is about."""
    findings = findings_of(check_header, stated)
    assert findings.checked == ["leaks"]
    return [(finding.code, finding.facts.get("name")) for finding in findings.found]


@pytest.mark.parametrize(
    ("change", "faults"),
    [
        ({}, []),
        ({"note": 1}, [KEYS]),
        ({"claim": {"name": "cover"}}, [CLAIM]),
        ({"claim": {"name": "magic", "k": 3}}, [CLAIM]),
        ({"claim": {**PROMISED, "cls": 1}}, [CLAIM]),
        ({"claim": {**PROMISED, "why": "research"}}, [CLAIM]),
        ({"claim": {"name": "none"}}, []),
        ({"claim": {"name": "none", "why": "research"}}, []),
        *(({"claim": {"name": "none", "why": why}}, [CLAIM]) for why in ("unclaimed", "for a friend")),
        *(({"claim": {**SHARE, "leakage_share": share}, "parameters": {}}, []) for share in (0.012, 0)),
        ({"claim": {**SHARE, "leakage_share": 0.0123}, "parameters": {}}, [CLAIM]),
        *(({"method": method}, []) for method in ("shoal", "geo-indistinguishability")),
        *(({"method": method}, [METHOD]) for method in ("ann-smith", "a", "shoal\n", "Shoal", 7, ["x"])),
        ({"method": None, "parameters": {}}, [METHOD]),
        *(({"parameters": parameters}, [PARAMETERS]) for parameters in (None, [], [("k", 3)])),
        ({"parameters": {}}, []),
        *(({"parameters": {"k": k}, "claim": {"name": "none"}}, [PARAMETERS]) for k in (0, True, None, 1001)),
        *(({"parameters": {"k": k}, "claim": {"name": "none"}}, []) for k in (1, 1000)),
        ({"claim": {"name": "cover", "k": 1001}, "parameters": {}}, [CLAIM]),
        ({"claim": {"name": "kte-cover", "k": 2, "tau_s": 2**30}, "parameters": {}}, [CLAIM]),
        *(({name: value}, [GRID_SIZE]) for name, value in (("cell_m", 138_001_380), ("slot_s", 1_380_013_800))),
        *(({"method": "shoal", "parameters": {"max_span_m": span}}, said) for span, said in BOUNDS),
        *(({"parameters": {"k": 3, name: 9}}, [PARAMETERS]) for name in ("max_span_m", "candidates", "victim")),
        ({"parameters": {"k": 4}}, [other("k")]),
        ({"method": "shoal", "parameters": {"k": 3, "max_span_m": 9, "max_duration_s": 8}}, []),
        ({"method": "shoal", "parameters": {"k": 3, "max_span_m": 9, "seed": 8}}, [PARAMETERS]),
        ({"method": "shoal", "parameters": {"k": 3, "max_span_m": "k-merge"}}, [PARAMETERS]),
        ({"method": "k-scale", "parameters": {"k": 3, "constraint": "k-pick", "candidates": 300}}, []),
        ({"method": "k-scale", "parameters": {"k": 3, "constraint": "victim"}}, [PARAMETERS]),
        ({"method": "k-scale", "parameters": {"k": 3, "candidates": 40.7}}, [PARAMETERS]),
        ({"method": "glove", "parameters": {"k": 3, "merge": "k-merge", "variant": "loose"}}, []),
        *(({"method": "glove", "parameters": {"k": 3, "merge": merge}}, [PARAMETERS]) for merge in ("loose", 5)),
        ({"method": "glove", "parameters": {"k": "k-merge"}, "claim": {"name": "none"}}, [PARAMETERS]),
        ({**KTE, "parameters": {"k": 2, "tau_s": 60, "epsilon_s": 90, "reuse": "strict"}}, []),
        ({**KTE, "parameters": {"k": 2, "tau_s": 61, "epsilon_s": 90}}, [other("tau_s")]),
        ({**KTE, "parameters": {"k": 2, "tau_s": 60, "epsilon_s": 91}}, [other("epsilon_s")]),
        ({**KTE, "parameters": {"k": 1, "tau_s": 1}}, [other("k"), other("tau_s")]),
        *(({**NOISE, "parameters": parameters}, []) for parameters in ({}, {"epsilon_per_m": 0.01})),
        ({**NOISE, "parameters": {"epsilon_per_m": 0.02}}, [other("epsilon_per_m")]),
        ({"parameters": {"epsilon_per_m": 0.01}, "claim": {"name": "none"}}, [PARAMETERS]),
        *(
            ({**NOISE, "claim": {"name": "none"}, "parameters": {"epsilon_per_m": value}}, [PARAMETERS])
            for value in (0.0, -1.0, float("inf"), float("nan"), 1, "1")
        ),
        ({"method": "promesse", "parameters": {"step_m": 5}, "claim": {"name": "none"}}, []),
    ],
    ids=str,
)
def test_every_fault_of_a_header_is_named(change, faults):
    assert header_faults({**STATED, **change}) == faults


@pytest.mark.parametrize(
    ("crs", "faults"),
    [
        *((code, []) for code in ("EPSG:32650", "epsg:32650", "ESRI:102028", "IGNF:LAMB93")),
        *((local_crs(lng, lat), []) for lng, lat in ((116, 40), (-180, -90), (0, 0), (180, 90))),
        *((code, [CRS]) for code in ("EPSG:4326", "EPSG:999999", "OGC:CRS84", "IGNF:ANN.SMITH", "ESRI:13800138000")),
        *((code, [CRS]) for code in ("EPSG:32650 ", "EPSG:32650+5773", "victim:13800138000", "", "proj=merc")),
        ('PROJCRS["x",REMARK["victim"]]', [CRS]),
        *((local_crs(*centre), [CRS]) for centre in ((116, 91), (181, 0), (116, "-0"), (116, "040"), (1.5, 0))),
        *((OWN.replace("+no_defs", more), [CRS]) for more in ("+x_0=40.7 +no_defs", "+no_defs +title=ann", "+y_0=0")),
        *((OWN.replace("WGS84", datum), [CRS]) for datum in ("ann", "GRS80")),
        *((OWN.replace("=laea", f"={name}"), [CRS]) for name in ("tmerc", "lcc", "eqc", "aeqd", "ortho", "merc")),
        ("+proj=utm +zone=50 +south +datum=WGS84 +units=m +no_defs +type=crs", [CRS]),
        ("+proj=lcc +lat_0=46.5 +lon_0=3 +lat_1=49 +lat_2=44 +x_0=700000 +ellps=GRS80", [CRS]),
        *((OWN.replace("lat_0=40", f"lat_0={lat}"), [CRS]) for lat in ("40.0", "39.9042", "4e1", "\u0664\u0660")),
        (OWN + " ", [CRS]),
    ],
)
def test_a_crs_says_nothing_but_the_projection(crs, faults):
    assert header_faults({**STATED, "crs": crs}) == faults
    assert faults or is_public_crs(crs)
    assert is_public_crs(crs) <= (faults == [] or crs.startswith(("EPSG", "OGC", "IGNF")))  # whether it is known


def test_a_missing_key_is_another_set_of_keys():
    for name, faults in (("format", [KEYS]), ("crs", [KEYS]), ("method", [KEYS, METHOD])):
        assert header_faults({key: value for key, value in STATED.items() if key != name}) == faults


def test_a_crs_that_can_not_be_written_is_not_known():
    with pytest.raises(CannotCheck, match="not one that pyproj knows"):
        Grid("\ud800", 100, 60).cells(np.zeros(1), np.zeros(1))


# The manifest


COUNTS = {"records": 6, "samples_published": 24, "samples_suppressed": 0, "samples_created": 0}


@pytest.fixture
def release(tmp_path):
    """A file, and one beside it."""
    (tmp_path / "a.csv").write_bytes(b"a")
    (tmp_path / "b.csv").write_bytes(b"b")
    return tmp_path / "a.csv"


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


MANIFEST = {"shoal": STATED, "counts": COUNTS, "seeded": False, "files": {"a.csv": digest("a")}}


@pytest.mark.parametrize(
    ("change", "is_csv", "problem"),
    [
        ({}, True, None),
        ({}, False, None),
        ({"files": {"a.csv": digest("b")}}, True, "hash"),
        ({"files": {"a.csv": digest("a"), "b.csv": digest("b")}}, True, "file-names"),
        ({"files": {"a.csv": digest("a"), "\ud800": digest("b")}}, True, "file-names"),
        ({"files": {"b.csv": digest("b")}}, True, "file-names"),
        ({"files": {}}, True, "file-names"),
        ({"shoal": {**STATED, "cell_m": float(STATED["cell_m"])}}, False, "contradiction"),
        ({"shoal": {**STATED, "format": True}}, False, "contradiction"),
        ({"shoal": dict(reversed(STATED.items()))}, False, None),
        ({"shoal": {**STATED, "cell_m": 1}}, True, None),
        ({"shoal": {**STATED, "cell_m": 1}}, False, "contradiction"),
        ({"seeded": True}, True, "seeded"),
        ({"seeded": True, "shoal": {**STATED, "claim": {"name": "k-anonymity", "k": 3}}}, True, None),
        ({"seeded": True, "shoal": {**STATED, "claim": {"name": "none"}}}, True, None),
        ({"seeded": True, "shoal": {**STATED, "claim": "none"}}, True, "seeded"),
        ({"seeded": True, "shoal": {}}, True, "seeded"),
    ],
)
def test_every_fault_of_a_manifest_is_named(change, is_csv, problem, release):
    findings, manifest = Findings(), {**MANIFEST, **change}
    assert check_manifest(findings, release, manifest, STATED, is_csv=is_csv) is manifest
    assert findings.found == ([] if problem is None else [(f"integrity/{problem}", {})])
    assert findings.checked == ["integrity"]


@pytest.mark.parametrize(
    "manifest",
    [
        *("not JSON", [], 0, {"shoal": {}}),
        *({name: value for name, value in MANIFEST.items() if name != left_out} for left_out in MANIFEST),
        {**MANIFEST, "note": 1},
        *({**MANIFEST, "seeded": value} for value in (0, None, "no")),
        *({**MANIFEST, name: value} for name in ("shoal", "counts", "files") for value in ([], "x", None)),
        *({**MANIFEST, "counts": counts} for counts in ({**COUNTS, "users": 6}, {"records": 6})),
        *({**MANIFEST, "counts": {**COUNTS, "records": value}} for value in (-1, True, 6.0, None)),
        *({**MANIFEST, "files": files} for files in ({"a.csv": 7}, {"a.csv": "x", "b.csv": None})),
    ],
)
def test_a_malformed_manifest_is_not_used(manifest, release):
    findings = Findings()
    assert check_manifest(findings, release, manifest, None, is_csv=True) is None
    assert findings.found == [("integrity/malformed", {})]
    assert findings.checked == ["integrity"]


def test_without_a_manifest_integrity_fails_only_if_the_file_states_something(release):
    for stated, found, checked in ((None, "no-manifest", []), ({}, "integrity/no-manifest", ["integrity"])):
        findings = Findings()
        assert check_manifest(findings, release, None, stated, is_csv=stated is None) is None
        assert (findings.found, findings.checked) == ([(found, {})], checked)


def test_the_manifest_is_read_if_there_is_one(release):
    assert read_manifest(release) is None
    beside = release.with_name("a.csv.manifest.json")
    beside.write_text('{"k": 3}')
    assert read_manifest(release) == {"k": 3}
    beside.write_text("{")
    assert read_manifest(release) == "not JSON"
    beside.unlink()
    beside.mkdir()
    with pytest.raises(CannotCheck, match="the manifest can't be read"):
        read_manifest(release)


def test_how_far_rounding_takes_a_count():
    whole, rounded = [0, 9, 99], {100: 5, 120: 5, 990: 5, 1000: 50, 12_000: 500, 10**6: 50_000}
    assert [rounding(value) for value in whole] == [0, 0, 0]
    assert {value: rounding(value) for value in rounded} == rounded


def exact(counts):
    return ("leaks/exact-counts", {"n": counts})


RECORDS, PUBLISHED, CREATED = ("integrity/records", {}), ("integrity/samples", {}), ("truth/samples-created", {})


@pytest.mark.parametrize(
    ("change", "records", "samples", "found"),
    [
        ({}, 6, 24, []),
        *(({}, records, 24, [RECORDS]) for records in (5, 7)),
        *(({"records": 120}, records, 24, []) for records in (115, 125)),
        *(({"records": 120}, records, 24, [RECORDS]) for records in (114, 126)),
        *(({}, 6, samples, [PUBLISHED]) for samples in (23, 25)),
        *(({"samples_published": 1200}, 6, samples, []) for samples in (1234, 1250)),
        *(({"samples_published": 1200}, 6, samples, [PUBLISHED]) for samples in (1149, 1251)),
        ({"samples_created": 1}, 6, 24, [CREATED]),
        *(({"samples_suppressed": count}, 6, 24, [exact(1)]) for count in (101, 12_300)),
        *(({"samples_suppressed": count}, 6, 24, []) for count in (99, 110)),
        ({"samples_suppressed": 101, "records": 121}, 121, 24, [exact(2)]),
    ],
    ids=str,
)
def test_counts_are_rounded_and_true(change, records, samples, found):
    findings = findings_of(check_counts, {**COUNTS, **change}, records, samples + 3, 3)
    assert findings.found == found
    assert findings.checked == ["leaks", "integrity", "truth"]


@pytest.mark.parametrize(("stated", "published", "least", "most"), [(5, 24, 29, 29), (120, 1200, 1265, 1375)])
def test_published_and_suppressed_are_all_within_rounding(stated, published, least, most):
    counts = {**COUNTS, "samples_suppressed": stated, "samples_published": published}
    for samples, found in ((least - 1, [PUBLISHED]), (least, []), (most, []), (most + 1, [PUBLISHED])):
        assert findings_of(check_counts, counts, 6, samples, None).found == found


@pytest.mark.parametrize(
    ("change", "records", "points", "found"),
    [
        ({}, 6, 24, []),
        *(({}, *numbers, [("integrity/records-and-points", {})]) for numbers in ((7, 24), (6, 25), (7, 25))),
        ({"records": 120, "samples_published": 1200}, 124, 1249, []),
        ({"records": 120}, 126, 24, [("integrity/records-and-points", {})]),
        ({"samples_created": 24}, 6, 24, []),
        ({"samples_created": 25}, 6, 24, [("integrity/points-created", {})]),
        ({"samples_suppressed": 101}, 6, 24, [exact(1)]),
    ],
    ids=str,
)
def test_counts_of_points_are_rounded_and_true(change, records, points, found):
    findings = findings_of(check_point_counts, {**COUNTS, **change}, records, points)
    assert findings.found == found
    assert findings.checked == ["leaks", "integrity"]


# The verdict


def test_a_verdict_has_all_that_was_found():
    findings = Findings()
    findings.ran("leaks")
    findings.fail_if(0, "truth/empty")
    findings.fail_if(2, "leaks/wild")
    findings.note("larger-k")
    findings.fail("audit/columns")
    findings.fail("leaks/labels")
    findings.skip("file")
    findings.skip("owners")
    findings.figures["users"] = 7
    problems = (
        "2 boxes have values that are missing or out of range.",
        PROBLEMS["audit/columns"],
        PROBLEMS["leaks/labels"],
    )
    assert Verdict.of(findings, COVER, COVER) == Verdict(
        ok=False,
        failures=("audit", "leaks"),
        figures={"users": 7},
        claim=COVER,
        checked=("leaks", "truth", "audit"),
        messages=(problems[0], NOTES["larger-k"], *problems[1:]),
        problems=problems,
        not_checked=(NOT_CHECKED["file"], NOT_CHECKED["owners"]),
        shown=None,
        codes=("leaks/wild", "audit/columns", "leaks/labels"),
    )


def test_nothing_checked_is_no_pass():
    findings = Findings()
    nothing = Verdict(ok=False, failures=(), figures={}, claim=COVER, checked=(), messages=())
    assert Verdict.of(findings, COVER, COVER) == nothing
    findings.ran("cover")
    verdict = Verdict.of(findings, COVER, NOTHING)
    assert (verdict.ok, verdict.shown) == (True, NOTHING)
    findings.figures["users"] = 1
    assert verdict.figures == {}


def test_a_verdict_is_written_with_plain_types():
    verdict = Verdict(
        ok=True,
        failures=(),
        figures={"users": 9},
        claim=COVER,
        checked=("cover",),
        messages=("Good.",),
        not_checked=("leaks",),
        shown=NOTHING,
        codes=("cover/nobody",),
    )
    assert verdict.to_dict() == {
        "verdict": "HOLDS",
        "ok": True,
        "failures": [],
        "figures": {"users": 9},
        "claim": {"name": "cover", "k": 2},
        "checked": ["cover"],
        "messages": ["Good."],
        "problems": [],
        "codes": ["cover/nobody"],
        "not_checked": ["leaks"],
        "shown": {"name": "none"},
    }
    verdict.raise_if_broken()
    assert verdict
    broken = replace(verdict, ok=False, failures=("audit", "cover"), messages=("Bad.", "Worse."), shown=None)
    assert not broken
    assert broken.to_dict()["shown"] is None
    with pytest.raises(NotVerified) as caught:
        broken.raise_if_broken()
    assert str(caught.value) == "the release does not keep its claim (audit, cover): Bad. Worse."


# The measured claim


def test_a_claim_about_windows_is_measured(monkeypatch):
    asked = []
    shown = Claim("kte-anonymity", k=2, tau_s=60, epsilon_s=90)
    verdict = Verdict(ok=True, failures=(), figures={}, claim=COVER, checked=("windows",), messages=(), shown=shown)

    def fake(*given, **options):
        asked.append((given, options))
        return verdict

    monkeypatch.setattr(measured, "verify", fake)
    plain = in_memory(ring(PEOPLE, 2))
    windows = replace(plain, claim=Claim("kte-cover", k=2, tau_s=60))
    known = Claim("kte-cover", k=2, tau_s=60, epsilon_s=90, leakage_share=0.1)
    for as_it_is in (plain, replace(windows, members=None), replace(windows, claim=known), replace(plain, claim=shown)):
        assert with_measured_claim(as_it_is) is as_it_is
    assert asked == []
    made = with_measured_claim(windows, run=Run(threads=3))
    assert made.claim == shown
    assert made.boxes is windows.boxes
    assert asked == [((PEOPLE, windows), {"max_suppressed": 1.0, "run": Run(threads=3)})]
    verdict = replace(verdict, shown=None)
    assert with_measured_claim(windows) is windows
    verdict = replace(verdict, ok=False, failures=("windows",), messages=("No.",), shown=shown)
    with pytest.raises(NotVerified, match=r"\(windows\): No\."):
        with_measured_claim(windows)


# What is asked


def stated(claim, k=None, tau_s=None, epsilon_s=None, grid=GRID, **more):
    return Header(grid, claim, k or claim.k, claim.tau_s or tau_s, claim.epsilon_s or epsilon_s, **more)


UNCLAIMED, RESEARCH = Claim("none", why="unclaimed"), Claim("none", why="research")


@pytest.mark.parametrize(
    ("k", "header", "asked", "noted"),
    [
        *((k, stated(Claim("cover", k=3)), 3, True) for k in (1, 2)),
        *((k, stated(Claim("cover", k=3)), k or 3, False) for k in (None, 3, 4)),
        *((k, stated(RESEARCH), k or 1, False) for k in (None, 1, 4)),
        (4, stated(UNCLAIMED), 4, False),
        (None, stated(NOTHING), 1, False),
        (None, stated(RESEARCH, k=3), 3, False),
        (None, stated(UNCLAIMED, k=3), 3, False),
        (2, stated(RESEARCH, k=3), 3, True),
    ],
    ids=range(13),
)
def test_the_larger_k_is_checked(k, header, asked, noted):
    findings = Findings()
    assert boxes._asked_k(findings, k, header) == asked
    assert findings.found == [("larger-k", {})] * noted


@pytest.mark.parametrize(
    ("k", "claim", "error", "text"),
    [
        (0, COVER, SettingsError, "at least 1"),
        (-1, UNCLAIMED, SettingsError, "at least 1"),
        *((k, COVER, SettingsError, "a whole number") for k in ("5", np.float64(5), 2.5, 2**31)),
        (None, UNCLAIMED, CannotCheck, "for which k; give `k`"),
        (None, Claim("geo-indistinguishability", epsilon_per_m=0.1), CannotCheck, "for which k; give `k`"),
    ],
    ids=range(8),
)
def test_a_k_that_makes_no_sense(k, claim, error, text):
    with pytest.raises(error, match=text):
        boxes._asked_k(Findings(), k, stated(claim))


KTE_COVER = Claim("kte-cover", k=2, tau_s=60)
KTE_SHARE = Claim("kte-cover", k=2, tau_s=60, epsilon_s=90, leakage_share=0.1)
KTE_ANONYMITY = Claim("kte-anonymity", k=2, tau_s=60, epsilon_s=90)


@pytest.mark.parametrize(
    ("header", "tau", "epsilon", "asked", "noted"),
    [
        (stated(COVER), None, None, None, False),
        (stated(COVER), "1min", None, AskedWindows(5, 60), False),
        (stated(COVER), 1, 1, AskedWindows(5, 1, 1, bounded=True), False),
        *((stated(COVER, tau_s=60), tau, None, AskedWindows(5, 60), False) for tau in (None, 50)),
        (stated(COVER, tau_s=60, epsilon_s=90), None, None, AskedWindows(5, 60, 90), False),
        (stated(COVER, tau_s=60, epsilon_s=90), None, 100, AskedWindows(5, 60, 100, bounded=True), False),
        (stated(NOTHING), "1min", "70s", AskedWindows(5, 60, 70, bounded=True), False),
        *((stated(KTE_COVER), tau, None, AskedWindows(5, 60), tau == 59) for tau in (None, 59, 60)),
        (stated(KTE_COVER), 61, 70, AskedWindows(5, 61, 70), False),
        (stated(KTE_COVER, epsilon_s=80), None, None, AskedWindows(5, 60, 80), False),
        (stated(KTE_SHARE), None, None, AskedWindows(5, 60, 90, stated=(90, 0.1)), False),
        (stated(KTE_SHARE), 60, 90, AskedWindows(5, 60, 90, stated=(90, 0.1)), False),
        (stated(KTE_SHARE), 50, None, AskedWindows(5, 60, 90, stated=(90, 0.1)), True),
        (stated(KTE_SHARE), None, 80, AskedWindows(5, 60, 80, stated=(90, 0.1)), False),
        (stated(KTE_SHARE), 61, None, AskedWindows(5, 61, 90), False),
        *((stated(KTE_ANONYMITY), None, e, AskedWindows(5, 60, 90, bounded=True), False) for e in (None, 100)),
        (stated(KTE_ANONYMITY), 60, 80, AskedWindows(5, 60, 80, bounded=True), False),
    ],
    ids=range(21),
)
def test_windows_of_what_length_are_checked(header, tau, epsilon, asked, noted):
    findings = Findings()
    assert boxes._asked_windows(findings, 5, tau, epsilon, header) == asked
    assert findings.found == [("longer-windows", {})] * noted
    unchecked = header.claim is KTE_SHARE and tau == 61
    assert findings.skipped == [NOT_CHECKED["leaking-share"]] * unchecked


@pytest.mark.parametrize(
    ("claim", "tau", "epsilon", "text"),
    [
        *((COVER, tau, None, text) for tau, text in ((0, "at least one second"), (2**31, "at most 68 years"))),
        *((KTE_COVER, None, e, text) for e, text in ((0, "at least one second"), (2**31, "at most 68 years"))),
        (COVER, None, 60, "`epsilon` needs the length of the windows"),
        *((KTE_ANONYMITY, tau, None, "windows of another length") for tau in (59, 61)),
    ],
    ids=range(7),
)
def test_windows_that_make_no_sense(claim, tau, epsilon, text):
    with pytest.raises(SettingsError, match=text):
        boxes._asked_windows(Findings(), 5, tau, epsilon, stated(claim))


# What is opened


def test_a_release_in_memory_is_opened_without_a_file():
    draft = ring(PEOPLE, 2)
    draft.suppressed = 3
    parameters = {"k": 5, "tau_s": 60, "epsilon_s": 90, "merge": "two-stage"}
    findings = Findings()
    seen = open_release(in_memory(draft, method="glove", parameters=parameters))
    opened = open_stated(findings, seen, BoxSubject, Given(original=PEOPLE), run=Run(threads=1))
    assert opened.header == Header(Grid(FRAME.crs, 100, 60), COVER, 2, 60, 90, "member")
    assert len(opened.records) == 6
    assert opened.audit.sort_by([("record", "ascending")])["record"].to_pylist() == sorted([*range(6)] * 2)
    assert (opened.file, opened.scan, opened.counts, opened.suppressed, opened.own) == (None, None, None, 3, True)
    assert findings.found == [("in-memory", {})]
    assert (findings.skipped, findings.checked) == ([NOT_CHECKED["file"]], [])


def opened_file(path, original=PEOPLE, **given):
    findings = Findings()
    how = Given(original=original, **given)
    return open_stated(findings, open_release(path), BoxSubject, how, run=Run(threads=1)), findings


@pytest.mark.parametrize("name", ["release.parquet", "release.csv"])
def test_a_file_is_opened_with_its_manifest(name, tmp_path):
    draft = ring(PEOPLE, 2)
    opened, findings = opened_file(draft.write(tmp_path, name)[0])
    assert opened.header == Header(Grid(FRAME.crs, 100, 60), COVER, 2)
    assert opened.counts == COUNTS
    assert (opened.audit, opened.suppressed, opened.own) == (None, 0, True)
    assert opened.records is opened.scan.records
    assert (findings.skipped, findings.found) == ([], [])
    assert findings.checked == ["integrity", "leaks"]


def test_a_file_of_another_tool_is_opened_with_what_the_caller_says(tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(ring(PEOPLE, 2).table(), path)
    opened, findings = opened_file(path)
    assert opened.header == Header(Grid(FRAME.crs, 100, 60), UNCLAIMED, None)
    assert (opened.counts, opened.suppressed, opened.own) == (None, 0, False)
    assert findings.skipped == [NOT_CHECKED["integrity"], NOT_CHECKED["form"]]
    assert findings.found == [("no-manifest", {}), ("foreign-release", {})]
    assert opened_file(path, claim=KTE_SHARE)[0].header == Header(Grid(FRAME.crs, 100, 60), KTE_SHARE, 2, 60, 90)
    options = ReadOptions(crs="EPSG:32650", cell=100, slot=60)
    opened, _ = opened_file(path, "events.csv", options=options, claim=KTE_SHARE, crs=FRAME.crs)
    assert opened.header == Header(Grid(FRAME.crs, 100, 60), KTE_SHARE, 2, 60, 90)
    for few in (None, ReadOptions(cell=100), ReadOptions(slot=60), ReadOptions()):
        with pytest.raises(CannotCheck, match="on which grid it is; give `crs`, `cell` and `slot`"):
            opened_file(path, "events.csv", options=few, crs=FRAME.crs)
    how = Given(original="events.csv", options=options)
    assert BoxSubject.foreign(Findings(), how).grid == Grid("EPSG:32650", 100, 60)


def test_a_quote_is_a_stray_byte_in_a_csv_release_but_not_in_a_file_of_another_tool(tmp_path):
    draft = ring(PEOPLE, 2)
    draft.edit_bytes = lambda data: data.replace(b"uid", b'"uid"', 1)
    path, _ = draft.write(tmp_path, "release.csv")
    assert opened_file(path)[1].codes == ["leaks/stray-bytes"]
    path.with_name("release.csv.manifest.json").unlink()
    assert opened_file(path)[1].codes == []


def test_a_parquet_release_is_looked_at_for_metadata_and_its_header_for_leaks(tmp_path):
    draft = ring(PEOPLE, 2)
    draft.edit_table = lambda table: table.replace_schema_metadata({"note": "x"})
    draft.edit_shoal = lambda shoal: {**shoal, "note": "x"}
    _, findings = opened_file(draft.write(tmp_path)[0])
    assert findings.found[:2] == [("leaks/header-keys", {}), ("leaks/metadata-keys", {"n": 1})]


def test_what_can_not_be_understood_is_not_opened(tmp_path):
    draft = ring(PEOPLE, 2)
    draft.edit_shoal = lambda shoal: {**shoal, "format": 2}
    path, _ = draft.write(tmp_path)
    opened, findings = opened_file(path)
    assert opened is None
    assert findings.codes == ["integrity/header"]
    verdict = verify(PEOPLE, path)
    assert (verdict.failures, verdict.claim) == (("integrity",), Claim("none", why="unreadable"))
    draft = ring(PEOPLE, 2)
    draft.edit_table = lambda table: table.drop_columns(["t_end"])
    assert opened_file(draft.write(tmp_path)[0])[0] is None


@pytest.mark.parametrize(
    ("options", "crs", "claim", "noted"),
    [
        (None, None, None, False),
        (None, FRAME.crs, COVER, False),
        (None, "EPSG:32650", None, True),
        (ReadOptions(crs=FRAME.crs, cell=100, slot=60), None, None, False),
        (ReadOptions(crs="EPSG:32650"), FRAME.crs, None, False),
        (ReadOptions(crs=FRAME.crs), "EPSG:32650", None, True),
        *((options, None, None, False) for options in (ReadOptions(), ReadOptions(crs=None))),
        *((ReadOptions(**other), None, None, True) for other in ({"crs": "EPSG:32650"}, {"cell": 200}, {"slot": 120})),
    ],
    ids=range(11),
)
def test_another_grid_is_noted(options, crs, claim, noted):
    how = Given(original=PEOPLE, options=options, crs=crs, claim=claim)
    findings = findings_of(BoxSubject.accept, stated(COVER, grid=Grid(FRAME.crs, 100, 60)), how)
    assert findings.found == [("other-grid", {})] * noted


def test_another_claim_is_refused():
    with pytest.raises(SettingsError, match="the release states its own claim"):
        BoxSubject.accept(Findings(), stated(COVER), Given(original=PEOPLE, claim=Claim("cover", k=3)))


def test_settings_given_beside_those_of_a_file_are_noted(tmp_path):
    path, _ = ring(PEOPLE, 2).write(tmp_path)
    assert opened_file(path, crs="EPSG:32650")[1].found == [("other-grid", {})]


# The memory that is left


def test_memory_is_left_besides_records_and_audit():
    opened = SimpleNamespace(records=SimpleNamespace(nbytes=100))
    table = pa.table({"record": pa.array([1, 2, 3], pa.int64())})
    assert table.nbytes == 24
    assert boxes._left(Run(), opened, table) is None
    for memory, audit, left in ((1000, None, 900), (1000, "audit.csv", 900), (1000, table, 876), (101, None, 1)):
        assert boxes._left(Run(memory=memory), opened, audit) == left
    assert boxes._left(Run(memory=124), opened, table) == boxes._left(Run(memory=10), opened, table) == 0


def test_keywords_are_put_on_top_of_the_options():
    options = ReadOptions(cell=100)
    assert check._reading(None, {}) is None
    assert check._reading(options, {}) is options
    assert check._reading(options, {"slot": 60}) == ReadOptions(cell=100, slot=60)
    assert check._reading(None, {"cell": 7}) == ReadOptions(cell=7)


# The checks, in order


class Crowd:
    """People of whom only the numbers are known."""

    samples = 1000
    outside: dict[str, int]
    rows_outside: dict[str, int]

    def __init__(self, outside=None, rows_outside=None):
        self.outside, self.rows_outside = outside or {}, rows_outside or {}

    def __len__(self):
        return 50

    def whole(self):
        return "everybody"


def book(**given):
    """Return an opened release of which only what is given is known."""
    return Opened(**{"header": stated(COVER), "records": "records", **given})


def three_records(people):
    """Records that were published for so many people."""
    three = {"unique": SimpleNamespace(counts=np.array([5, 1, 7])), "groups": np.array([0, 0, 2])}
    weights = np.array([1, 1, people - 2])
    return type("Catalogue", (), {**three, "weights": weights, "__len__": lambda _: 3})()


def test_people_who_are_left_out_are_counted():
    findings = findings_of(boxes._note_sizes, Crowd(), three_records(43), 4)
    assert findings.figures["users_left_out"] == 7
    assert findings.found == [("left-out", {"n": 7, "users": 50})]


@pytest.mark.parametrize(
    ("outside", "rows", "noted"),
    [
        ({}, {}, []),
        ({"a": 0}, {"b": 0}, []),
        ({"a": 1, "b": 1000}, {}, [("outside-claim", {"users": 1001, "rows": 0})]),
        ({}, {"a": 2, "b": 2000}, [("outside-claim", {"users": 0, "rows": 2002})]),
    ],
)
def test_sizes_are_noted(outside, rows, noted):
    findings = findings_of(boxes._note_sizes, Crowd(outside, rows), three_records(50), 4)
    left_out = {"users_outside": outside, "rows_outside": rows}
    assert findings.figures == {"users": 50, "samples": 1000, **left_out, "records": 3, "boxes": 17, "k": 4}
    assert findings.found == noted


def test_a_crs_may_lose_as_many_rows_as_may_be_suppressed():
    for lost, broken in (
        ({}, 0),
        ({"no place in the CRS": 250}, 0),
        ({"no place in the CRS": 251}, 1),
        ({"bbox": 999}, 0),
    ):
        findings = findings_of(boxes._check_places, Crowd(rows_outside=lost), 0.2)
        assert findings.found == [("suppression/no-place", {"limit": 0.2})] * broken


@pytest.mark.parametrize(
    ("stated_count", "share", "broken"), [(0, 0.2, False), (200, 0.2, False), (201, 0.2, True), (1, 0.0, True)]
)
def test_without_an_audit_only_the_stated_share_is_checked(stated_count, share, broken):
    findings, people = Findings(), Crowd()
    given = (None, stated_count, share)
    assert boxes._check_audit(findings, book(), people, *given, timed=True, run=Run()) == (people, None)
    assert findings.found == [("suppression/stated-too-many", {"limit": share})] * broken
    assert findings.skipped == [NOT_CHECKED["members"]]


@pytest.mark.parametrize(("first", "timed"), [(None, False), (None, True), (np.zeros(1), True)])
def test_with_an_audit_members_are_checked(first, timed, monkeypatch):
    called = []

    def note(name, outcome):
        def fake(*given, **options):
            called.append((name, given[1:], options))
            return outcome

        monkeypatch.setattr(boxes, name, fake)

    witnesses = SimpleNamespace(first=first)
    note("read_audit", witnesses)
    note("check_merged", "merged")
    note("check_members", "members")
    findings, people = Findings(), Crowd()
    opened = book(header=stated(COVER, truth="group"), counts={**COUNTS, "samples_suppressed": 120})
    outcome = boxes._check_audit(findings, opened, people, "audit", None, 0.3, timed=timed, run=Run(threads=2))
    given = {"declared": 120, "tolerance": 5, "max_suppressed": 0.3, "run": Run(threads=2)}
    name, level = ("members", {"level": "group"}) if first is None else ("merged", {})
    assert outcome == name
    assert called == [
        ("read_audit", ("audit", people, "records"), {"slot_s": 1800 if timed else None, "run": Run(threads=2)}),
        (f"check_{name}", (people, "records", witnesses), {**given, **level}),
    ]
    note("read_audit", None)
    how = {"timed": timed, "run": Run(threads=2)}
    assert boxes._check_audit(findings, opened, people, "audit", None, 0.3, **how) == (people, None)
    assert len(called) == 3
    assert (findings.skipped, findings.failures) == ([], set())


@pytest.mark.parametrize(
    ("opened", "suppressed", "declared", "most"),
    [
        (book(), None, (0, 0), None),
        (book(suppressed=5), None, (5, 0), 5),
        (book(suppressed=5), 0, (0, 0), None),
        (book(suppressed=5), 7, (7, 0), 7),
        (book(counts=COUNTS), None, (0, 0), None),
        (book(counts={**COUNTS, "samples_suppressed": 120}, suppressed=5), None, (120, 5), 125),
        (book(counts={**COUNTS, "samples_suppressed": 120}), 123, (123, 0), 123),
    ],
    ids=range(7),
)
def test_how_much_is_suppressed_at_most(opened, suppressed, declared, most):
    assert declared_suppressed(opened, suppressed) == declared
    assert boxes._stated(opened, suppressed) == most


ASKED = AskedWindows(2, 60)
IDENTICAL = ("check_identical", {"witnesses": "w", "stated": None, "level": "member", "run": Run(threads=2)})
COVERED = ("check_cover", {"witnesses": "w", "exact": True, "run": Run(threads=2)})
CONCEALED = ("check_concealment", {"witnesses": "w", "run": Run(threads=2)})
IN_WINDOWS = ("check_windows", {"slot_s": 1800, "witnesses": "w", "exact": True, "run": Run(threads=2)})


def checked_claim(monkeypatch, claim, windows, *, said=None, failures=()):
    """Return the checks that are made of a claim, with what they are asked."""
    called = []

    def note(name):
        def fake(findings, people, records, asked, **options):
            assert records == "records"
            assert (people == "everybody") == (name != "check_identical")
            assert asked == (windows if name == "check_windows" else 2)
            for code in failures:
                findings.fail(code)
            called.append((name, options))

        monkeypatch.setattr(boxes, name, fake)

    for name in ("check_identical", "check_cover", "check_concealment", "check_windows"):
        note(name)
    opened = book(header=stated(claim))
    boxes._check_claim(Findings(), opened, Crowd(), 2, windows, "w", exact=True, stated=said, run=Run(threads=2))
    return called


@pytest.mark.parametrize(
    ("claim", "windows", "checks"),
    [
        (Claim("k-anonymity", k=2), None, [IDENTICAL]),
        (Claim("k-anonymity", k=2), ASKED, [IDENTICAL, IN_WINDOWS]),
        (Claim("k-concealment", k=2), None, [COVERED, CONCEALED]),
        (Claim("k-concealment", k=2), ASKED, [COVERED, CONCEALED, IN_WINDOWS]),
        (COVER, None, [COVERED]),
        (COVER, ASKED, [COVERED, IN_WINDOWS]),
        (KTE_COVER, ASKED, [IN_WINDOWS]),
        (KTE_ANONYMITY, ASKED, [IN_WINDOWS]),
        (NOTHING, None, [COVERED]),
        (NOTHING, ASKED, [IN_WINDOWS]),
    ],
    ids=str,
)
def test_which_checks_a_claim_needs(claim, windows, checks, monkeypatch):
    assert checked_claim(monkeypatch, claim, windows) == checks


def test_a_claim_about_points_can_not_be_checked_on_boxes(monkeypatch):
    claim = Claim("geo-indistinguishability", epsilon_per_m=0.1)
    with pytest.raises(CannotCheck, match=f"the claim {claim.name} is about points, not boxes"):
        checked_claim(monkeypatch, claim, None)


@pytest.mark.parametrize(
    ("claim", "windows", "failures", "told"),
    [
        *((COVER, None, failures, False) for failures in ((), ("cover/nobody",), ("cover/nobody", "windows/nobody"))),
        *((COVER, None, failures, True) for failures in (("truth/empty",), ("cover/nobody", "integrity/hash"))),
        (NOTHING, None, (), False),
        (KTE_COVER, ASKED, ("windows/nobody",), False),
        (KTE_COVER, ASKED, ("leaks/labels",), True),
        *((Claim("k-anonymity", k=2), None, failures, True) for failures in ((), ("identical/no-record",))),
        (Claim("k-anonymity", k=2), ASKED, (), False),
        (Claim("k-anonymity", k=2), ASKED, ("identical/no-record",), True),
    ],
    ids=str,
)
def test_cover_and_loss_are_told_apart_by_the_audit_only(claim, windows, failures, told, monkeypatch):
    assert checked_claim(monkeypatch, claim, windows, failures=failures)
    if told:
        assert checked_claim(monkeypatch, claim, windows, said=5, failures=failures)
        return
    with pytest.raises(CannotCheck, match="a missing sample may be a fault or not; give the audit file: `audit`"):
        checked_claim(monkeypatch, claim, windows, said=5, failures=failures)


@pytest.mark.parametrize(
    ("counts", "suppressed", "found", "missing"),
    [
        (None, None, None, ()),
        (COUNTS, None, None, (0,)),
        (COUNTS, None, 30, (30,)),
        (COUNTS, 5, None, (5,)),
        (COUNTS, 5, 30, (30,)),
        ({**COUNTS, "samples_suppressed": 7}, None, None, (7,)),
        ({**COUNTS, "samples_suppressed": 7}, 0, None, (0,)),
        ({**COUNTS, "samples_suppressed": 7}, None, 0, (0,)),
        ({**COUNTS, "samples_suppressed": 120}, None, None, (None,)),
        ({**COUNTS, "samples_suppressed": 120}, 121, None, (121,)),
    ],
    ids=range(10),
)
@pytest.mark.parametrize("own", [True, False])
def test_a_file_is_looked_through(counts, suppressed, found, missing, own, monkeypatch):
    called = []
    for name in ("check_values", "check_counts", "check_numbering", "check_labels"):
        monkeypatch.setattr(
            boxes, name, lambda findings, *given, name=name, **options: called.append((name, given, options))
        )
    findings, people = Findings(), Crowd()
    if found is not None:
        findings.figures["suppressed_samples"] = found
    opened = book(file="file", scan="scan", counts=counts, own=own)
    boxes._check_file(findings, opened, people, 2, "w", "h", suppressed)
    assert called == [
        ("check_values", ("scan", 2, "file"), {"claim": "cover", "own": own}),
        *(("check_counts", (counts, len("records"), 1000, number), {}) for number in missing),
        ("check_numbering", ("records",), {}),
        ("check_labels", (people, "records", "w", "h"), {}),
    ]
    called.clear()
    for lacking in ({"file": None}, {"scan": None}):
        boxes._check_file(findings, replace(opened, **lacking), people, 2, "w", "h", suppressed)
    assert called == []


IN_HOURS = AskedWindows(2, 3600)


@pytest.mark.parametrize(
    ("claim", "windows", "what", "asked"),
    [
        (COVER, None, "The claim", "k = 2"),
        (NOTHING, None, "Nothing is claimed; cover", "k = 2"),
        (NOTHING, IN_HOURS, "Nothing is claimed; cover of windows", "k = 2 in windows of 3,600 s"),
        (KTE_COVER, IN_HOURS, "The claim", "k = 2 in windows of 3,600 s"),
    ],
    ids=range(4),
)
def test_the_result_says_what_was_asked(claim, windows, what, asked):
    findings = findings_of(boxes._note_result, book(header=stated(claim)), 1234, 2, windows)
    assert findings.found == [("holds", {"rest": "", "what": what, "users": 1234, "asked": asked})]
    findings = Findings([Finding("cover/nobody", {})], skipped=["a", "b"])
    boxes._note_result(findings, book(header=stated(claim)), 1234, 2, windows)
    assert findings.found[1:] == [("not-checked", {"what": "a; b"})]


IN_MINUTES = AskedWindows(3, 60, 90)
BOUNDED = {"k": 3, "tau_s": 60, "epsilon_s": 90}


@pytest.mark.parametrize(
    ("name", "k", "windows", "above", "ran", "shown"),
    [
        *(("k-anonymity", 3, windows, 0, [], Claim("k-anonymity", k=3)) for windows in (None, IN_MINUTES)),
        ("k-anonymity", 2, None, 0, [], Claim("k-anonymity", k=2)),
        ("k-anonymity", 1, None, 0, [], NOTHING),
        ("k-concealment", 3, None, 0, ["audit"], Claim("k-concealment", k=3)),
        *(("k-concealment", 3, windows, 0, [], Claim("cover", k=3)) for windows in (None, IN_MINUTES)),
        ("cover", 3, None, 0, ["audit"], Claim("cover", k=3)),
        ("cover", 3, IN_MINUTES, 0, [], Claim("cover", k=3)),
        ("none", 3, None, 0, [], Claim("cover", k=3)),
        ("none", 1, None, 0, [], NOTHING),
        *((name, 3, AskedWindows(3, 60), 4, [], Claim("kte-cover", k=3, tau_s=60)) for name in ("none", "kte-cover")),
        *((name, 3, IN_MINUTES, 0, [], Claim("kte-anonymity", **BOUNDED)) for name in ("none", "kte-cover")),
        ("kte-cover", 3, IN_MINUTES, 4, [], Claim("kte-cover", **BOUNDED, leakage_share=0.034)),
    ],
    ids=range(16),
)
def test_what_was_shown(name, k, windows, above, ran, shown):
    findings = Findings(checked=ran, figures={"leakage": {"windows": 120, "windows_above": above}})
    assert boxes._shown(findings, name, k, windows) == shown
    findings.fail("truth/empty")
    assert boxes._shown(findings, name, k, windows) == NOTHING


# All of it


def points_in_memory():
    """Return a release of one point."""
    where = np.array([1.0])
    points = Points(np.array([1000]), where, where)
    return Release(np.array([0, 1]), points, FRAME, "promesse", {"step_m": 5}, NOTHING)


def test_points_are_checked_by_their_own_rules(monkeypatch, tmp_path):
    called = []

    class Stops(PointSubject):
        def people(self, given):
            called.append((given, self.audit, self.run))
            raise CannotCheck("so far")

    monkeypatch.setitem(check._SUBJECTS, "points", Stops)
    points, options = points_in_memory(), ReadOptions(split_gap=600)
    run = Run(memory=5, threads=2, work_dir=tmp_path)
    with pytest.raises(CannotCheck, match="so far"):
        verify("events.csv", points, options=options, audit="a", claim=NOTHING, run=run)
    assert called == [(Given(original="events.csv", options=options, claim=NOTHING), "a", run)]
    path = tmp_path / "points.parquet"
    pq.write_table(pa.table({name: pa.array([], pa.float64()) for name in ("uid", "datetime", "lat", "lng")}), path)
    with pytest.raises(CannotCheck, match="holds points, not boxes, and claims nothing that could be checked"):
        verify("events.csv", path)
    for asked in ({"k": 2}, {"tau": 60}, {"epsilon": 60}, {"k": 2, "tau": 60, "epsilon": 60}):
        for release in (points, path):
            with pytest.raises(CannotCheck, match="the release holds points, not boxes: nobody is hidden among k"):
                verify("events.csv", release, **asked)
    assert len(called) == 1


def test_boxes_are_not_checked_against_fixes_or_parts_of_people():
    release = in_memory(ring(PEOPLE, 2))
    with pytest.raises(CannotCheck, match="boxes are checked against samples of the grid, not fixes"):
        verify(object.__new__(Traces), release)
    with pytest.raises(SettingsError, match="`split_gap`"):
        verify(PEOPLE, release, options=ReadOptions(split_gap=600))


def test_a_verdict_says_all_that_was_done(tmp_path):
    path, audit = ring(PEOPLE, 2).write(tmp_path)
    verdict = verify(PEOPLE, path)
    assert (verdict.ok, verdict.codes) == (True, ())
    order, result = verdict.messages
    assert "needs 20 records" in order
    assert result == f"The claim holds for 6 users, checked with k = 2, except {NOT_CHECKED['members']}."
    assert (verdict.claim, verdict.shown, verdict.not_checked) == (COVER, COVER, (NOT_CHECKED["members"],))
    assert set(verdict.checked) == {"integrity", "leaks", "truth", "cover"}
    assert (verdict.figures["users"], verdict.figures["samples"], verdict.figures["records"]) == (6, 24, 6)
    assert "cover" not in verdict.figures
    assert "cover" in verify(PEOPLE, path, exact=True).figures
    verdict = verify(PEOPLE, path, audit=audit)
    assert verdict.messages[-1] == "The claim holds for 6 users, checked with k = 2."
    assert set(verdict.checked) == {"integrity", "leaks", "truth", "cover", "audit", "suppression"}


def test_an_audit_given_goes_before_the_releases_own():
    draft = ring(PEOPLE, 2)
    release = in_memory(draft)
    assert "audit" in verify(PEOPLE, release).checked
    assert verify(PEOPLE, release, audit=draft.audit().slice(1)).failures == ("audit",)
    without = verify(PEOPLE, replace(release, members=None))
    assert without.not_checked == (NOT_CHECKED["file"], NOT_CHECKED["members"])
    lossy = replace(release, suppressed=1)
    assert verify(PEOPLE, lossy).failures == ("suppression",)
    with pytest.raises(CannotCheck, match="give the audit file: `audit`"):
        verify(PEOPLE, replace(lossy, members=None))


def test_boxes_that_overlap_are_named():
    draft = ring(PEOPLE, 2)
    draft.records[0].boxes.append(list(draft.records[0].boxes[-1]))
    verdict = verify(PEOPLE, in_memory(draft, members=None))
    assert "truth/boxes" in verdict.codes
    assert str(Finding("truth/boxes", {"n": 1})) in verdict.problems
