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
from shoal.layouts import Boxes, Points
from shoal.reading.options import ReadOptions
from shoal.release import Members, Release
from shoal.run import Run
from shoal.seen.findings import Findings
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
from tests.releases import FRAME, ring, toy_people

PEOPLE = toy_people(users=6, samples=4, seed=4)
COVER = Claim("cover", k=2)
NOTHING = Claim("none")
GRID = Grid(None, 500, 1800)
STATED = {
    "format": 1,
    "method": "by-hand",
    "parameters": {"k": 3},
    "claim": {"name": "cover", "k": 3},
    "cell_m": 500,
    "slot_s": 1800,
    "crs": None,
}


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
        ('{"k": 3}\n\n', "not JSON"),
        ('{\n   "k": 3\n}', "not JSON"),
        ('{\n  "k": "\\u00e9"\n}', "not JSON"),
        ('{"k":3}', "not JSON"),
        ("null", "not JSON"),
        ("{", "not JSON"),
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
    ids=range(16),
)
def test_json_is_read_as_python_writes_it(text, value):
    assert parse_json(text.encode()) == value


def test_bytes_that_are_no_text_are_no_json():
    assert parse_json(b'"\xff"') == "not JSON"


def header(**change):
    return read_header({**STATED, **change})


def test_a_header_says_grid_claim_and_truth():
    claim = Claim("cover", k=3)
    assert header() == Header(GRID, claim, 3, None, None, "member")
    assert header(crs="EPSG:32650").grid == Grid("EPSG:32650", 500, 1800)
    assert header(cell_m=1, slot_s=2**31 - 1).grid == Grid(None, 1, 2**31 - 1)
    assert header(parameters=None) == header(parameters=[]) == header(parameters={}) == header()
    assert header(method="glove", parameters={"merge": "two-stage"}).truth == "group"
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
        *({"cell_m": value} for value in (None, *NO_COUNT)),
        *({"slot_s": value} for value in (None, *NO_COUNT)),
        *({"claim": {"name": "none"}, "parameters": {"k": value}} for value in NO_COUNT if value),
        *({"parameters": {name: value}} for name in ("tau_s", "epsilon_s") for value in NO_COUNT if value),
        *({"crs": value} for value in (5, ["EPSG:32650"], False)),
        *({"claim": value} for value in (None, "cover", [], {"name": "magic"}, {"name": "cover"})),
        {"claim": {"name": "cover", "k": 0}},
    ],
    ids=str,
)
def test_a_header_that_can_not_be_understood(change):
    assert header(**change) is None


@pytest.mark.parametrize("stated", [None, "not JSON", [], 1, {}])
def test_what_is_no_object_is_no_header(stated):
    assert read_header(stated) is None


def test_a_claim_may_have_keys_of_any_name():
    assert header(claim={"name": "cover", "k": 3, "cls": 1, "self": 2}) == header()


@pytest.mark.parametrize(
    ("method", "merge", "level"),
    [
        ("glove", "two-stage", "group"),
        ("glove", "k-merge", "member"),
        ("glove", None, "member"),
        ("shoal", "two-stage", "member"),
        (None, "two-stage", "member"),
    ],
)
def test_the_level_of_truth(method, merge, level):
    assert truth_level(method, {"merge": merge}) == level


KEYS = "The shoal object has other keys than the format allows."
CLAIM = "The claim holds more than its name and what it promises."
METHOD = "The method is not a plain name."
PARAMETERS = "The parameters hold something that is not a public setting of the method."
CRS = "The CRS is neither a code nor a projection in plain PROJ terms."
CENTRE = "The projection's centre is not in whole degrees: it may be the data's own."
WINDOWS = {"name": "kte-anonymity", "k": 2, "tau_s": 60, "epsilon_s": 90}
KTE = {"method": "kte-hide", "claim": WINDOWS}
NOISE = {"method": "geo-indistinguishability", "claim": {"name": "geo-indistinguishability", "epsilon_per_m": 0.01}}
SHARE = {"name": "kte-cover", "k": 2, "tau_s": 60, "epsilon_s": 90}


def other(name):
    return f"The parameters hold another {name} than the claim."


@pytest.mark.parametrize(
    ("change", "problems"),
    [
        ({}, []),
        ({"note": 1}, [KEYS]),
        ({"claim": {"name": "cover"}}, [CLAIM]),
        ({"claim": {"name": "cover", "k": 3, "cls": 1}}, [CLAIM]),
        ({"claim": {"name": "none", "why": "research"}}, []),
        ({"claim": {"name": "none", "why": "unclaimed"}}, [CLAIM]),
        ({"claim": {**SHARE, "leakage_share": 0.012}, "parameters": {}}, []),
        ({"claim": {**SHARE, "leakage_share": 0}, "parameters": {}}, []),
        ({"claim": {**SHARE, "leakage_share": 0.0123}, "parameters": {}}, [CLAIM]),
        ({"method": "a"}, []),
        ({"method": "a" + 31 * "0"}, []),
        ({"method": "a" + 32 * "0"}, [METHOD]),
        ({"method": "-a"}, [METHOD]),
        ({"method": "a\n"}, [METHOD]),
        ({"method": None, "parameters": {}}, [METHOD]),
        ({"method": 7}, [METHOD]),
        ({"parameters": None}, [PARAMETERS]),
        ({"parameters": [("k", 3)]}, [PARAMETERS]),
        ({"parameters": {}}, []),
        ({"parameters": {"k": 0}, "claim": {"name": "none"}}, [PARAMETERS]),
        ({"parameters": {"k": True}, "claim": {"name": "none"}}, [PARAMETERS]),
        ({"parameters": {"k": 1}, "claim": {"name": "none"}}, []),
        ({"parameters": {"k": 2**31 - 1}, "claim": {"name": "none"}}, []),
        ({"parameters": {"k": 2**31}, "claim": {"name": "none"}}, [PARAMETERS]),
        ({"parameters": {"k": 3, "max_span_m": 9}}, [PARAMETERS]),
        ({"parameters": {"k": 4}}, [other("k")]),
        ({"method": "shoal", "parameters": {"k": 3, "max_span_m": 9, "max_duration_s": 8}}, []),
        ({"method": "shoal", "parameters": {"k": 3, "max_span_m": 9, "seed": 8}}, [PARAMETERS]),
        ({"method": "shoal", "parameters": {"k": 3, "max_span_m": "k-merge"}}, [PARAMETERS]),
        ({"method": "glove", "parameters": {"k": 3, "merge": "k-merge", "variant": "loose"}}, []),
        ({"method": "glove", "parameters": {"k": 3, "merge": "loose"}}, [PARAMETERS]),
        ({"method": "glove", "parameters": {"k": 3, "merge": 5}}, [PARAMETERS]),
        ({"method": "glove", "parameters": {"k": "k-merge"}, "claim": {"name": "none"}}, [PARAMETERS]),
        ({**KTE, "parameters": {"k": 2, "tau_s": 60, "epsilon_s": 90, "reuse": "strict"}}, []),
        ({**KTE, "parameters": {"k": 2, "tau_s": 61, "epsilon_s": 90}}, [other("tau_s")]),
        ({**KTE, "parameters": {"k": 2, "tau_s": 60, "epsilon_s": 91}}, [other("epsilon_s")]),
        ({**KTE, "parameters": {"k": 1, "tau_s": 1}}, [other("k"), other("tau_s")]),
        ({**NOISE, "parameters": {"epsilon_per_m": 0.01}}, []),
        ({**NOISE, "parameters": {"epsilon_per_m": 0.02}}, [other("epsilon_per_m")]),
        ({**NOISE, "parameters": {}}, []),
        ({"parameters": {"epsilon_per_m": 0.01}, "claim": {"name": "none"}}, [PARAMETERS]),
        *(
            ({**NOISE, "claim": {"name": "none"}, "parameters": {"epsilon_per_m": value}}, [PARAMETERS])
            for value in (0.0, -1.0, float("inf"), float("nan"), 1, "1")
        ),
        ({"method": "promesse", "parameters": {"step_m": 5}, "claim": {"name": "none"}}, []),
        ({"crs": "EPSG:32650"}, []),
        ({"crs": "EPSG:" + 20 * "1"}, []),
        ({"crs": "EPSG:" + 21 * "1"}, [CRS]),
        ({"crs": "+proj=laea"}, []),
        ({"crs": "proj=merc"}, [CRS]),
        ({"crs": "+proj=merc +zone"}, [CRS]),
        ({"crs": "+proj=merc +south="}, [CRS]),
        ({"crs": "+proj=merc +south=x"}, [CRS]),
        ({"crs": "+proj=merc +zone=5 +south"}, []),
        ({"crs": "+proj=merc +zone=500"}, [CRS]),
        ({"crs": "+proj=merc +x_0=1.5 +units=m +type=crs"}, []),
        ({"crs": "+proj=merc +x_0=1,5"}, [CRS]),
        ({"crs": "+proj=merc +x_0=\u0664\u0660"}, [CRS]),
        ({"crs": "+proj=merc +zone=\u0665"}, [CRS]),
        ({"crs": "+proj=merc +units=km"}, [CRS]),
        ({"crs": "+proj=merc +proj=merc"}, [CRS]),
        ({"crs": "+proj=merc +towgs84=1,2,3"}, []),
        ({"crs": "+proj=merc +towgs84=1,2,3,4,5,6,7"}, []),
        ({"crs": "+proj=merc +towgs84=1,2,3,4"}, [CRS]),
        ({"crs": "+proj=merc +lat_0=14.5 +lon_0=0.5"}, []),
        ({"crs": "+proj=laea +lat_0=14 +lon_0=-3.0"}, []),
        ({"crs": "+proj=laea +lat_0=14.5 +lon_0=3"}, [CENTRE]),
        ({"crs": "+proj=laea +lat_0=14 +lon_0=3.5"}, [CENTRE]),
        ({"crs": "+proj=laea +lat_0=-14.5"}, [CENTRE]),
        ({"crs": "+proj=laea +lat_0=1e1"}, [CRS, CENTRE]),
        ({"crs": "+proj=laea +lat_0=14 +x_0=1.5"}, [CENTRE]),
        ({"crs": "+proj=laea +lat_0=52 +lon_0=10 +x_0=4321000 +y_0=3210000"}, []),
        ({"crs": "+proj=laea +lat_0=14 +y_0=0.5"}, [CENTRE]),
        ({"crs": "+proj=laea +lat_0=14 +lon_0=3.0000000000000001"}, [CENTRE]),
        ({"crs": "+proj=laea +lat_0=14 +lat_1=40.7"}, [CENTRE]),
        ({"crs": "+proj=laea +lat_0=14 +k=138001380"}, [CENTRE]),
        ({"crs": "+proj=aeqd +lat_0=14.5 +lon_0=3"}, [CENTRE]),
        ({"crs": "+proj=ortho +lat_0=14.5 +lon_0=3"}, [CENTRE]),
        ({"crs": "+proj=sterea +lat_0=52.15616055555555 +lon_0=5.38763888888889 +k=0.9999079 +x_0=155000"}, []),
    ],
    ids=str,
)
def test_every_fault_of_a_header_is_named(change, problems):
    findings = Findings()
    check_header(findings, {**STATED, **change})
    assert findings.problems == problems
    assert findings.checked == ["leaks"]


def test_a_missing_key_is_another_set_of_keys():
    for name, problems in (("format", [KEYS]), ("crs", [KEYS]), ("method", [KEYS, METHOD])):
        findings = Findings()
        check_header(findings, {key: value for key, value in STATED.items() if key != name})
        assert findings.problems == problems


def test_a_crs_that_can_not_be_written_is_not_known():
    with pytest.raises(CannotCheck, match="not one that pyproj knows"):
        Grid("\ud800", 100, 60).cells(np.zeros(1), np.zeros(1))


# The manifest


COUNTS = {"records": 6, "samples_published": 24, "samples_suppressed": 0, "samples_created": 0}
MALFORMED = "The manifest is malformed: its members are not those of the format."
UNNAMED = "The manifest does not name the release, and no other file."
DIFFER = "The manifest and the file do not say the same about the release."
SEEDED = "The release was seeded and yet claims what only random coins can give."


WRONG = "The file is not the one whose hash the manifest holds."


@pytest.fixture
def release(tmp_path):
    """A file, and one beside it."""
    (tmp_path / "a.csv").write_bytes(b"a")
    (tmp_path / "b.csv").write_bytes(b"b")
    return tmp_path / "a.csv"


def digest(text):
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("change", "is_csv", "problems"),
    [
        ({}, True, []),
        ({}, False, []),
        ({"files": {"a.csv": digest("a"), "b.csv": digest("b")}}, True, [UNNAMED]),
        ({"files": {"a.csv": digest("b")}}, True, [WRONG]),
        ({"files": {"a.csv": digest("a"), "\ud800": digest("b")}}, True, [UNNAMED]),
        ({"files": {"b.csv": digest("b")}}, True, [UNNAMED]),
        ({"files": {}}, True, [UNNAMED]),
        ({"shoal": {**STATED, "cell_m": float(STATED["cell_m"])}}, False, [DIFFER]),
        ({"shoal": {**STATED, "format": True}}, False, [DIFFER]),
        ({"shoal": dict(reversed(STATED.items()))}, False, []),
        ({"shoal": {**STATED, "cell_m": 1}}, True, []),
        ({"shoal": {**STATED, "cell_m": 1}}, False, [DIFFER]),
        ({"seeded": True}, True, [SEEDED]),
        ({"seeded": True, "shoal": {**STATED, "claim": {"name": "k-anonymity", "k": 3}}}, True, []),
        ({"seeded": True, "shoal": {**STATED, "claim": {"name": "none"}}}, True, []),
        ({"seeded": True, "shoal": {**STATED, "claim": "none"}}, True, [SEEDED]),
        ({"seeded": True, "shoal": {}}, True, [SEEDED]),
    ],
)
def test_every_fault_of_a_manifest_is_named(change, is_csv, problems, release):
    findings = Findings()
    manifest = {"shoal": STATED, "counts": COUNTS, "seeded": False, "files": {"a.csv": digest("a")}, **change}
    assert check_manifest(findings, release, manifest, STATED, is_csv=is_csv) is manifest
    assert findings.problems == findings.messages == problems
    assert findings.checked == ["integrity"]


@pytest.mark.parametrize(
    "change",
    [
        {"note": 1},
        *({"seeded": value} for value in (0, None, "no")),
        *({name: value} for name in ("shoal", "counts", "files") for value in ([], "x", None)),
        {"counts": {**COUNTS, "users": 6}},
        {"counts": {"records": 6}},
        *({"counts": {**COUNTS, "records": value}} for value in (-1, True, 6.0, None)),
        {"files": {"a.csv": 7}},
        {"files": {"a.csv": "x", "b.csv": None}},
    ],
    ids=str,
)
def test_a_malformed_manifest_is_not_used(change, release):
    findings = Findings()
    manifest = {"shoal": STATED, "counts": COUNTS, "seeded": False, "files": {"a.csv": digest("a")}, **change}
    assert check_manifest(findings, release, manifest, None, is_csv=True) is None
    assert findings.problems == [MALFORMED]


@pytest.mark.parametrize("manifest", ["not JSON", [], 0])
def test_what_is_no_object_is_no_manifest(manifest, release):
    findings = Findings()
    assert check_manifest(findings, release, manifest, None, is_csv=True) is None
    assert findings.problems == [MALFORMED]
    assert findings.checked == ["integrity"]


def test_without_a_manifest_integrity_fails_only_if_the_file_states_something(release):
    findings = Findings()
    assert check_manifest(findings, release, None, None, is_csv=True) is None
    assert findings.messages == ["Integrity not checked: there is no manifest beside the release."]
    assert (findings.checked, findings.problems) == ([], [])
    findings = Findings()
    assert check_manifest(findings, release, None, {}, is_csv=False) is None
    assert findings.problems == findings.messages == ["The manifest is missing: without one it is no release."]


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


@pytest.mark.parametrize(
    ("value", "off"),
    [(0, 0), (9, 0), (99, 0), (100, 5), (120, 5), (990, 5), (1000, 50), (12_000, 500), (10**6, 50_000)],
)
def test_how_far_rounding_takes_a_count(value, off):
    assert rounding(value) == off


RECORDS = "The manifest's number of records is not that of the release."
PUBLISHED = "The manifest's number of published samples is not that of the release."
CREATED = "The manifest says that samples were created."


def exact(counts):
    return f"{counts} counts of the manifest are not rounded to two significant digits."


@pytest.mark.parametrize(
    ("change", "records", "samples", "problems"),
    [
        ({}, 6, 24, []),
        ({}, 7, 24, [RECORDS]),
        ({}, 5, 24, [RECORDS]),
        ({"records": 120}, 125, 24, []),
        ({"records": 120}, 115, 24, []),
        ({"records": 120}, 126, 24, [RECORDS]),
        ({"records": 120}, 114, 24, [RECORDS]),
        ({}, 6, 25, [PUBLISHED]),
        ({}, 6, 23, [PUBLISHED]),
        ({"samples_published": 1200}, 6, 1234, []),
        ({"samples_published": 1200}, 6, 1250, []),
        ({"samples_published": 1200}, 6, 1251, [PUBLISHED]),
        ({"samples_published": 1200}, 6, 1149, [PUBLISHED]),
        ({"samples_created": 1}, 6, 24, [CREATED]),
        ({"samples_suppressed": 101}, 6, 24, [exact(1)]),
        ({"samples_suppressed": 12_300}, 6, 24, [exact(1)]),
        ({"samples_suppressed": 99}, 6, 24, []),
        ({"samples_suppressed": 110}, 6, 24, []),
        ({"samples_suppressed": 101, "records": 121}, 121, 24, [exact(2)]),
    ],
    ids=str,
)
def test_counts_are_rounded_and_true(change, records, samples, problems):
    findings = Findings()
    check_counts(findings, {**COUNTS, **change}, records, samples + 3, 3)
    assert findings.problems == problems
    assert findings.checked == ["leaks", "integrity", "truth"]
    assert findings.failures == {
        "leaks" if "rounded" in text else "truth" if "created" in text else "integrity" for text in problems
    }


@pytest.mark.parametrize(
    ("stated", "published", "samples", "true"),
    [
        (5, 24, 29, True),
        (5, 24, 30, False),
        (5, 24, 28, False),
        (120, 1200, 1375, True),
        (120, 1200, 1376, False),
        (120, 1200, 1265, True),
        (120, 1200, 1264, False),
    ],
)
def test_published_and_suppressed_are_all_within_rounding(stated, published, samples, true):
    findings = Findings()
    counts = {**COUNTS, "samples_suppressed": stated, "samples_published": published}
    check_counts(findings, counts, 6, samples, None)
    assert findings.problems == ([] if true else [PUBLISHED])


NUMBERS = "The manifest's numbers of records and points are not the release's."
MORE = "The manifest says that more points were created than published."


@pytest.mark.parametrize(
    ("change", "records", "points", "problems"),
    [
        ({}, 6, 24, []),
        ({}, 7, 24, [NUMBERS]),
        ({}, 6, 25, [NUMBERS]),
        ({}, 7, 25, [NUMBERS]),
        ({"records": 120, "samples_published": 1200}, 124, 1249, []),
        ({"records": 120}, 126, 24, [NUMBERS]),
        ({"samples_created": 24}, 6, 24, []),
        ({"samples_created": 25}, 6, 24, [MORE]),
        ({"samples_suppressed": 101}, 6, 24, [exact(1)]),
    ],
    ids=str,
)
def test_counts_of_points_are_rounded_and_true(change, records, points, problems):
    findings = Findings()
    check_point_counts(findings, {**COUNTS, **change}, records, points)
    assert findings.problems == problems
    assert findings.checked == ["leaks", "integrity"]


# The verdict


def test_findings_say_everything_once():
    findings = Findings()
    findings.ran("leaks")
    findings.fail_if(0, "truth", "No.")
    findings.fail_if(None, "truth", "No.")
    findings.fail_if(2, "cover", "Two.")
    findings.say("By the way.")
    findings.fail("audit", "One.")
    findings.fail("audit", "One.")
    findings.fail("leaks", "Two.")
    findings.say("By the way.")
    findings.skip("this")
    findings.skip("that")
    findings.figures["users"] = 7
    assert Verdict.of(findings, COVER, COVER) == Verdict(
        ok=False,
        failures=("audit", "cover", "leaks"),
        figures={"users": 7},
        claim=COVER,
        checked=("leaks", "truth", "cover", "audit"),
        messages=("Two.", "By the way.", "One."),
        problems=("Two.", "One."),
        not_checked=("this", "that"),
        shown=None,
    )


def test_what_was_already_said_is_still_a_problem():
    findings = Findings()
    findings.say("So.")
    findings.fail("truth", "So.")
    assert (findings.problems, findings.messages) == (["So."], ["So."])


def test_nothing_checked_is_no_pass():
    findings = Findings()
    assert Verdict.of(findings, COVER, COVER) == Verdict(
        ok=False, failures=(), figures={}, claim=COVER, checked=(), messages=()
    )
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
    )
    assert verdict.to_dict() == {
        "ok": True,
        "failures": [],
        "figures": {"users": 9},
        "claim": {"name": "cover", "k": 2},
        "checked": ["cover"],
        "messages": ["Good."],
        "problems": [],
        "not_checked": ["leaks"],
        "shown": {"name": "none"},
    }
    verdict.raise_if_broken()
    broken = replace(verdict, ok=False, failures=("audit", "cover"), messages=("Bad.", "Worse."), shown=None)
    assert broken.to_dict()["shown"] is None
    with pytest.raises(NotVerified) as caught:
        broken.raise_if_broken()
    assert str(caught.value) == "the release does not hold what it claims (audit, cover): Bad. Worse."


# The measured claim


def in_memory(draft, **change):
    """Return a draft as the Release that a method would make."""
    counts = [len(record.boxes) for record in draft.records]
    sizes = [len(record.members) for record in draft.records]
    given = {
        "offsets": np.concatenate([[0], np.cumsum(counts)]),
        "layout": Boxes(np.array([box for record in draft.records for box in record.boxes], dtype=np.int32)),
        "frame": draft.people.frame,
        "method": "by-hand",
        "parameters": {"k": draft.k},
        "claim": Claim(**draft.claim),
        "suppressed": draft.suppressed,
        "members": Members(
            np.array([record.owner for record in draft.records]),
            np.concatenate([[0], np.cumsum(sizes)]),
            np.array([member for record in draft.records for member in record.members]),
            draft.people,
        ),
    }
    return Release(**{**given, **change})


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


LARGER = "The release claims a larger k than asked for; the larger one was checked."
UNCLAIMED, RESEARCH = Claim("none", why="unclaimed"), Claim("none", why="research")


@pytest.mark.parametrize(
    ("k", "header", "asked", "said"),
    [
        (None, stated(Claim("cover", k=3)), 3, []),
        (1, stated(Claim("cover", k=3)), 3, [LARGER]),
        (2, stated(Claim("cover", k=3)), 3, [LARGER]),
        (3, stated(Claim("cover", k=3)), 3, []),
        (4, stated(Claim("cover", k=3)), 4, []),
        (1, stated(RESEARCH), 1, []),
        (4, stated(RESEARCH), 4, []),
        (4, stated(UNCLAIMED), 4, []),
        (None, stated(RESEARCH), 1, []),
        (None, stated(NOTHING), 1, []),
        (None, stated(RESEARCH, k=3), 3, []),
        (None, stated(UNCLAIMED, k=3), 3, []),
        (2, stated(RESEARCH, k=3), 3, [LARGER]),
    ],
    ids=range(13),
)
def test_the_larger_k_is_checked(k, header, asked, said):
    findings = Findings()
    assert boxes._asked_k(findings, k, header) == asked
    assert findings.messages == said


@pytest.mark.parametrize(
    ("k", "header", "error", "text"),
    [
        (0, stated(COVER), SettingsError, "at least 1"),
        (-1, stated(UNCLAIMED), SettingsError, "at least 1"),
        ("5", stated(COVER), SettingsError, "a whole number"),
        (np.float64(5), stated(COVER), SettingsError, "a whole number"),
        (2.5, stated(COVER), SettingsError, "a whole number"),
        (2**31, stated(COVER), SettingsError, "a whole number"),
        (None, stated(UNCLAIMED), CannotCheck, "for which k; give --k"),
        (
            None,
            stated(Claim("geo-indistinguishability", epsilon_per_m=0.1)),
            CannotCheck,
            "for which k; give --k",
        ),
    ],
    ids=range(8),
)
def test_a_k_that_makes_no_sense(k, header, error, text):
    with pytest.raises(error, match=text):
        boxes._asked_k(Findings(), k, header)


LONGER = "The release claims longer windows than asked for; these were checked."
KTE_COVER = Claim("kte-cover", k=2, tau_s=60)
KTE_SHARE = Claim("kte-cover", k=2, tau_s=60, epsilon_s=90, leakage_share=0.1)
KTE_ANONYMITY = Claim("kte-anonymity", k=2, tau_s=60, epsilon_s=90)


@pytest.mark.parametrize(
    ("header", "tau", "epsilon", "asked", "said"),
    [
        (stated(COVER), None, None, None, []),
        (stated(COVER), "1min", None, AskedWindows(5, 60), []),
        (stated(COVER), 1, 1, AskedWindows(5, 1, 1, bounded=True), []),
        (stated(COVER, tau_s=60), None, None, AskedWindows(5, 60), []),
        (stated(COVER, tau_s=60), 50, None, AskedWindows(5, 60), []),
        (stated(COVER, tau_s=60, epsilon_s=90), None, None, AskedWindows(5, 60, 90), []),
        (stated(COVER, tau_s=60, epsilon_s=90), None, 100, AskedWindows(5, 60, 100, bounded=True), []),
        (stated(NOTHING), 60, 70, AskedWindows(5, 60, 70, bounded=True), []),
        (stated(KTE_COVER), None, None, AskedWindows(5, 60), []),
        (stated(KTE_COVER), 59, None, AskedWindows(5, 60), [LONGER]),
        (stated(KTE_COVER), 60, None, AskedWindows(5, 60), []),
        (stated(KTE_COVER), 61, 70, AskedWindows(5, 61, 70), []),
        (stated(KTE_COVER, epsilon_s=80), None, None, AskedWindows(5, 60, 80), []),
        (stated(KTE_SHARE), None, None, AskedWindows(5, 60, 90, stated=(90, 0.1)), []),
        (stated(KTE_SHARE), 60, 90, AskedWindows(5, 60, 90, stated=(90, 0.1)), []),
        (stated(KTE_SHARE), 50, None, AskedWindows(5, 60, 90, stated=(90, 0.1)), [LONGER]),
        (stated(KTE_SHARE), None, 80, AskedWindows(5, 60, 80, stated=(90, 0.1)), []),
        (stated(KTE_SHARE), 61, None, AskedWindows(5, 61, 90), []),
        (stated(KTE_ANONYMITY), None, None, AskedWindows(5, 60, 90, bounded=True), []),
        (stated(KTE_ANONYMITY), 60, 80, AskedWindows(5, 60, 80, bounded=True), []),
        (stated(KTE_ANONYMITY), None, 100, AskedWindows(5, 60, 90, bounded=True), []),
    ],
    ids=range(21),
)
def test_windows_of_what_length_are_checked(header, tau, epsilon, asked, said):
    findings = Findings()
    assert boxes._asked_windows(findings, 5, tau, epsilon, header) == asked
    assert findings.messages == said
    unchecked = header.claim is KTE_SHARE and tau == 61
    assert findings.skipped == ["the stated share of windows that leak, which is about shorter ones"] * unchecked


@pytest.mark.parametrize(
    ("header", "tau", "epsilon", "text"),
    [
        (stated(COVER), 0, None, "at least one second"),
        (stated(KTE_COVER), None, 0, "at least one second"),
        (stated(COVER), 2**31, None, "at most 68 years"),
        (stated(KTE_COVER), None, 2**31, "at most 68 years"),
        (stated(COVER), None, 60, "epsilon is about windows of a length"),
        (stated(KTE_ANONYMITY), 61, None, "windows of another length"),
        (stated(KTE_ANONYMITY), 59, None, "windows of another length"),
    ],
    ids=range(7),
)
def test_windows_that_make_no_sense(header, tau, epsilon, text):
    with pytest.raises(SettingsError, match=text):
        boxes._asked_windows(Findings(), 5, tau, epsilon, header)


# What is opened


def test_a_release_in_memory_is_opened_without_a_file():
    draft = ring(PEOPLE, 2)
    draft.suppressed = 3
    parameters = {"k": 5, "tau_s": 60, "epsilon_s": 90, "merge": "two-stage"}
    findings = Findings()
    seen = open_release(in_memory(draft, method="glove", parameters=parameters))
    opened = open_stated(findings, seen, BoxSubject, Given(original=PEOPLE), run=Run(threads=1))
    assert opened.header == Header(Grid(FRAME.crs, 100, 60), COVER, 2, 60, 90, "group")
    assert len(opened.records) == 6
    assert opened.audit.sort_by([("record", "ascending")])["record"].to_pylist() == sorted([*range(6)] * 2)
    assert (opened.file, opened.scan, opened.counts, opened.suppressed, opened.own) == (None, None, None, 3, True)
    said = "Integrity not checked, nor leaks: the release is in memory, there is no file yet."
    assert findings.messages == [said]
    assert findings.skipped == ["integrity and leaks"]
    assert findings.checked == []


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
    assert (findings.skipped, findings.messages) == ([], [])
    assert findings.checked == ["integrity", "leaks"]


OWN_FORM = "the file's form and metadata, which are another tool's"


def test_a_file_of_another_tool_is_opened_with_what_the_caller_says(tmp_path):
    path = tmp_path / "other.parquet"
    pq.write_table(ring(PEOPLE, 2).table(), path)
    opened, findings = opened_file(path)
    assert opened.header == Header(Grid(FRAME.crs, 100, 60), UNCLAIMED, None)
    assert (opened.counts, opened.suppressed, opened.own) == (None, 0, False)
    assert findings.skipped == ["integrity", OWN_FORM]
    assert findings.messages == [
        "Integrity not checked: there is no manifest beside the release.",
        "Integrity not checked: the release does not say which tool made it, on which grid.",
    ]
    assert opened_file(path, claim=KTE_SHARE)[0].header == Header(Grid(FRAME.crs, 100, 60), KTE_SHARE, 2, 60, 90)
    options = ReadOptions(crs="EPSG:32650", cell=100, slot=60)
    opened, _ = opened_file(path, "events.csv", options=options, claim=KTE_SHARE, crs=FRAME.crs)
    assert opened.header == Header(Grid(FRAME.crs, 100, 60), KTE_SHARE, 2, 60, 90)
    for few in (None, ReadOptions(cell=100), ReadOptions(slot=60), ReadOptions()):
        with pytest.raises(CannotCheck, match="on which grid it is; give --crs, --cell and --slot"):
            opened_file(path, "events.csv", options=few, crs=FRAME.crs)
    findings = Findings()
    how = Given(original="events.csv", options=options)
    assert BoxSubject.foreign(findings, how).grid == Grid("EPSG:32650", 100, 60)


def test_a_csv_file_of_another_tool_may_have_any_bytes(tmp_path):
    path, _ = ring(PEOPLE, 2).write(tmp_path, "other.csv")
    path.with_name("other.csv.manifest.json").unlink()
    path.write_bytes(path.read_bytes().replace(b"uid", b'"uid"', 1))
    _, findings = opened_file(path)
    assert findings.problems == []


def test_a_quote_in_a_csv_release_is_a_stray_byte(tmp_path):
    draft = ring(PEOPLE, 2)
    draft.edit_bytes = lambda data: data.replace(b"uid", b'"uid"', 1)
    _, findings = opened_file(draft.write(tmp_path, "release.csv")[0])
    assert findings.problems == ["The file holds bytes that are no part of its columns."]


def test_a_parquet_release_is_looked_at_for_metadata_and_its_header_for_leaks(tmp_path):
    draft = ring(PEOPLE, 2)
    draft.edit_table = lambda table: table.replace_schema_metadata({"note": "x"})
    draft.edit_shoal = lambda shoal: {**shoal, "note": "x"}
    _, findings = opened_file(draft.write(tmp_path)[0])
    assert findings.problems[:2] == [KEYS, "1 metadata keys are not allowed in a release."]


def test_what_can_not_be_understood_is_not_opened(tmp_path):
    draft = ring(PEOPLE, 2)
    draft.edit_shoal = lambda shoal: {**shoal, "format": 2}
    path, _ = draft.write(tmp_path)
    opened, findings = opened_file(path)
    assert opened is None
    assert findings.problems == ["The shoal object of the release can't be understood."]
    verdict = verify(PEOPLE, path)
    assert (verdict.failures, verdict.claim) == (("integrity",), Claim("none", why="unreadable"))
    draft = ring(PEOPLE, 2)
    draft.edit_table = lambda table: table.drop_columns(["t_end"])
    assert opened_file(draft.write(tmp_path)[0])[0] is None


OTHER_GRID = "Another grid was given than the release states; the release's was used."


@pytest.mark.parametrize(
    ("options", "crs", "claim", "said"),
    [
        (None, None, None, []),
        (None, FRAME.crs, COVER, []),
        (None, "EPSG:32650", None, [OTHER_GRID]),
        (ReadOptions(crs=FRAME.crs, cell=100, slot=60), None, None, []),
        (ReadOptions(crs="EPSG:32650"), None, None, [OTHER_GRID]),
        (ReadOptions(crs="EPSG:32650"), FRAME.crs, None, []),
        (ReadOptions(crs=FRAME.crs), "EPSG:32650", None, [OTHER_GRID]),
        (ReadOptions(crs=None), None, None, []),
        (ReadOptions(cell=200), None, None, [OTHER_GRID]),
        (ReadOptions(slot=120), None, None, [OTHER_GRID]),
        (ReadOptions(), None, None, []),
    ],
    ids=range(11),
)
def test_another_grid_is_noted(options, crs, claim, said):
    findings = Findings()
    how = Given(original=PEOPLE, options=options, crs=crs, claim=claim)
    BoxSubject.accept(findings, stated(COVER, grid=Grid(FRAME.crs, 100, 60)), how)
    assert findings.messages == said


def test_another_claim_is_refused():
    with pytest.raises(SettingsError, match="the release states its own claim"):
        BoxSubject.accept(Findings(), stated(COVER), Given(original=PEOPLE, claim=Claim("cover", k=3)))


def test_settings_given_beside_those_of_a_file_are_noted(tmp_path):
    path, _ = ring(PEOPLE, 2).write(tmp_path)
    assert opened_file(path, crs="EPSG:32650")[1].messages == [OTHER_GRID]


# The memory that is left


def test_memory_is_left_besides_records_and_audit():
    opened = SimpleNamespace(records=SimpleNamespace(nbytes=100))
    table = pa.table({"record": pa.array([1, 2, 3], pa.int64())})
    assert table.nbytes == 24
    assert boxes._left(Run(), opened, table) is None
    assert boxes._left(Run(memory=1000), opened, None) == 900
    assert boxes._left(Run(memory=1000), opened, "audit.csv") == 900
    assert boxes._left(Run(memory=1000), opened, table) == 876
    assert boxes._left(Run(memory=124), opened, table) == 0
    assert boxes._left(Run(memory=10), opened, table) == 0
    assert boxes._left(Run(memory=101), opened, None) == 1


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
    given = {"header": stated(COVER), "records": "records", **given}
    return Opened(**given)


def test_sizes_are_noted():
    three = {"unique": SimpleNamespace(counts=np.array([5, 1, 7])), "groups": np.array([0, 0, 2])}
    records = type("Catalogue", (), {**three, "__len__": lambda _: 3})()
    for outside, rows, said in [
        ({}, {}, []),
        ({"a": 0}, {"b": 0}, []),
        ({"a": 1, "b": 1000}, {}, ["1,001 users and 0 rows"]),
        ({}, {"a": 2, "b": 2000}, ["0 users and 2,002 rows"]),
    ]:
        findings = Findings()
        boxes._note_sizes(findings, Crowd(outside, rows), records, 4)
        assert findings.figures == {
            "users": 50,
            "samples": 1000,
            "users_outside": outside,
            "rows_outside": rows,
            "records": 3,
            "boxes": 17,
            "k": 4,
        }
        ending = " were left out by the reading rules and are outside the claim."
        assert findings.messages == [text + ending for text in said]


WITHOUT = "truth of members and suppression, which need the audit file"


@pytest.mark.parametrize(
    ("stated_count", "share", "problems"),
    [
        (0, 0.2, []),
        (200, 0.2, []),
        (201, 0.2, ["More than 20% of the samples are stated to be suppressed."]),
        (1, 0.0, ["More than 0% of the samples are stated to be suppressed."]),
    ],
)
def test_without_an_audit_only_the_stated_share_is_checked(stated_count, share, problems):
    findings, people = Findings(), Crowd()
    given = (None, stated_count, share)
    assert boxes._check_audit(findings, book(), people, *given, timed=True, run=Run()) == (people, None)
    assert findings.problems == problems
    assert findings.failures == ({"suppression"} if problems else set())
    assert findings.skipped == [WITHOUT]


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
        ("read_audit", ("audit", people, "records"), {"slot_s": 1800 if timed else None}),
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
            findings.failures.update(failures)
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
    for claim in (Claim("geo-indistinguishability", epsilon_per_m=0.1),):
        with pytest.raises(CannotCheck, match=f"the claim {claim.name} is about points, not boxes"):
            checked_claim(monkeypatch, claim, None)


@pytest.mark.parametrize(
    ("claim", "windows", "failures", "told"),
    [
        (COVER, None, (), False),
        (COVER, None, ("cover",), False),
        (COVER, None, ("cover", "windows"), False),
        (COVER, None, ("truth",), True),
        (COVER, None, ("cover", "integrity"), True),
        (NOTHING, None, (), False),
        (KTE_COVER, ASKED, ("windows",), False),
        (KTE_COVER, ASKED, ("leaks",), True),
        (Claim("k-anonymity", k=2), None, (), True),
        (Claim("k-anonymity", k=2), None, ("identical",), True),
        (Claim("k-anonymity", k=2), ASKED, (), False),
        (Claim("k-anonymity", k=2), ASKED, ("identical",), True),
    ],
    ids=str,
)
def test_cover_and_loss_are_told_apart_by_the_audit_only(claim, windows, failures, told, monkeypatch):
    assert checked_claim(monkeypatch, claim, windows, failures=failures)
    if told:
        assert checked_claim(monkeypatch, claim, windows, said=5, failures=failures)
        return
    with pytest.raises(CannotCheck, match="cover can't be told from loss; give the audit file: --audit"):
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
    boxes._check_file(findings, opened, people, 2, "w", suppressed)
    assert called == [
        ("check_values", ("scan", 2, "file"), {"claim": "cover", "own": own}),
        *(("check_counts", (counts, len("records"), 1000, number), {}) for number in missing),
        ("check_numbering", ("records",), {}),
        ("check_labels", (people, "records", "w"), {}),
    ]
    called.clear()
    for lacking in ({"file": None}, {"scan": None}):
        boxes._check_file(findings, replace(opened, **lacking), people, 2, "w", suppressed)
    assert called == []


@pytest.mark.parametrize(
    ("claim", "windows", "skipped", "failures", "said"),
    [
        (COVER, None, [], [], ["The claim holds for 1,234 users, checked with k = 2."]),
        (COVER, None, ["a", "b"], [], ["The claim holds for 1,234 users, checked with k = 2, except a; b."]),
        (COVER, None, [], ["cover"], []),
        (COVER, None, ["a", "b"], ["cover"], ["Not checked: a; b."]),
        (NOTHING, None, [], [], ["Nothing is claimed; cover holds for 1,234 users, checked with k = 2."]),
        (
            NOTHING,
            AskedWindows(2, 3600),
            [],
            [],
            [
                "Nothing is claimed; cover of windows holds for 1,234 users, checked with k = 2 in windows of 3,600 s.",
            ],
        ),
        (
            KTE_COVER,
            AskedWindows(2, 3600),
            ["a"],
            [],
            ["The claim holds for 1,234 users, checked with k = 2 in windows of 3,600 s, except a."],
        ),
    ],
    ids=range(7),
)
def test_the_result_is_said_in_a_sentence(claim, windows, skipped, failures, said):
    findings = Findings(failures=set(failures), skipped=skipped)
    boxes._note_result(findings, book(header=stated(claim)), 1234, 2, windows)
    assert findings.messages == said


@pytest.mark.parametrize(
    ("name", "k", "windows", "above", "ran", "shown"),
    [
        ("k-anonymity", 3, None, 0, [], Claim("k-anonymity", k=3)),
        ("k-anonymity", 3, AskedWindows(3, 60, 90), 0, [], Claim("k-anonymity", k=3)),
        ("k-anonymity", 2, None, 0, [], Claim("k-anonymity", k=2)),
        ("k-anonymity", 1, None, 0, [], NOTHING),
        ("k-concealment", 3, None, 0, ["audit"], Claim("k-concealment", k=3)),
        ("k-concealment", 3, None, 0, [], Claim("cover", k=3)),
        ("k-concealment", 3, AskedWindows(3, 60, 90), 0, [], Claim("cover", k=3)),
        ("cover", 3, None, 0, ["audit"], Claim("cover", k=3)),
        ("cover", 3, AskedWindows(3, 60, 90), 0, [], Claim("cover", k=3)),
        ("none", 3, None, 0, [], Claim("cover", k=3)),
        ("none", 1, None, 0, [], NOTHING),
        ("none", 3, AskedWindows(3, 60), 4, [], Claim("kte-cover", k=3, tau_s=60)),
        ("kte-cover", 3, AskedWindows(3, 60), 4, [], Claim("kte-cover", k=3, tau_s=60)),
        ("kte-cover", 3, AskedWindows(3, 60, 90), 0, [], Claim("kte-anonymity", k=3, tau_s=60, epsilon_s=90)),
        ("none", 3, AskedWindows(3, 60, 90), 0, [], Claim("kte-anonymity", k=3, tau_s=60, epsilon_s=90)),
        (
            "kte-cover",
            3,
            AskedWindows(3, 60, 90),
            4,
            [],
            Claim("kte-cover", k=3, tau_s=60, epsilon_s=90, leakage_share=0.034),
        ),
    ],
    ids=range(16),
)
def test_what_was_shown(name, k, windows, above, ran, shown):
    findings = Findings(checked=ran, figures={"leakage": {"windows": 120, "windows_above": above}})
    assert boxes._shown(findings, name, k, windows) == shown
    findings.failures.add("truth")
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
    with pytest.raises(SettingsError, match="--split-gap"):
        verify(PEOPLE, release, options=ReadOptions(split_gap=600))


def test_a_verdict_says_all_that_was_done(tmp_path):
    path, audit = ring(PEOPLE, 2).write(tmp_path)
    verdict = verify(PEOPLE, path)
    assert verdict.ok, verdict.messages
    assert verdict.messages[-1] == f"The claim holds for 6 users, checked with k = 2, except {WITHOUT}."
    assert (verdict.claim, verdict.shown, verdict.not_checked) == (COVER, COVER, (WITHOUT,))
    assert set(verdict.checked) == {"integrity", "leaks", "truth", "cover"}
    assert (verdict.figures["users"], verdict.figures["samples"], verdict.figures["records"]) == (6, 24, 6)
    assert verdict.messages[0] == "Order was not judged: that needs 20 records."
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
    assert without.not_checked == ("integrity and leaks", WITHOUT)
    lossy = replace(release, suppressed=1)
    assert verify(PEOPLE, lossy).failures == ("suppression",)
    with pytest.raises(CannotCheck, match="give the audit file: --audit"):
        verify(PEOPLE, replace(lossy, members=None))


def test_boxes_that_overlap_are_named():
    draft = ring(PEOPLE, 2)
    draft.records[0].boxes.append(list(draft.records[0].boxes[-1]))
    verdict = verify(PEOPLE, in_memory(draft, members=None))
    said = "1 records have no box, an empty box, or boxes that overlap or are unsorted in time."
    assert said in verdict.problems
