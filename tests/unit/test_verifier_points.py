"""What the check of points is made of: scans of files and of memory, the original fixes, times, noise, words."""

from collections import Counter
from dataclasses import replace
from itertools import chain, pairwise
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.claim import Claim
from shoal.errors import CannotCheck, TooLarge
from shoal.reading.options import ReadOptions
from shoal.run import Run
from shoal.seen import file as published
from shoal.seen import fixes as fixes_module
from shoal.seen.codes import NOT_CHECKED, NOTES, PROBLEMS
from shoal.seen.file import Batch, open_release_file
from shoal.seen.findings import Findings
from shoal.seen.fixes import OriginalFixes, open_fixes
from shoal.seen.point_scan import PointScan, _count_values, scan_point_release, scan_points
from shoal.seen.track import Track
from shoal.verifier import noise, verify
from shoal.verifier.noise import check_noise, check_times, compare_with_laplace
from tests.draws import examples
from tests.tracks import table_of, traces_of, walk

DAY = 86_400_000
PEOPLE = {100 + n: walk(n, fixes=30 + n) for n in range(25)}
TRACES = traces_of(PEOPLE)


def smoothed(step=100):
    return shoal.Promesse(step=step).anonymize(TRACES)


def judge(check, *given):
    """Return what a check finds."""
    findings = Findings()
    check(findings, *given)
    return findings


def fixes_of(original, *, keep=True, memory=None, **options):
    return open_fixes(original, ReadOptions(**options), keep=keep, run=Run(memory=memory, threads=1))


def scan_of(records):
    """A scan of records that are lists of (ms, lng, lat)."""
    rows = [np.array(column) for column in zip(*(row for record in records for row in record), strict=True)]
    ends = [(record[0][0], record[-1][0], *record[0][1:]) for record in records]
    counts = np.array([len(record) for record in records])
    return PointScan(
        np.arange(len(records)), counts, tuple(map(np.array, zip(*ends, strict=True))), columns=tuple(rows)
    )


def kept(people):
    """Fixes of people who are lists of (ms, lng, lat)."""
    scan = scan_of(people)
    track = Track(np.cumsum([0, *scan.counts]), *scan.columns)
    return OriginalFixes([*range(len(people))], scan.counts, *scan.edges[:2], track)


@pytest.mark.parametrize("name", ["r.parquet", "r.csv"])
@pytest.mark.parametrize("batch", [7, 1 << 20])
def test_scans_of_a_file_and_of_memory_agree(tmp_path, monkeypatch, name, batch):
    monkeypatch.setattr(published, "_BATCH", batch)
    made = smoothed().write(tmp_path / name)
    there = scan_points(Findings(), open_release_file(tmp_path / name), keep=True, run=Run(threads=1))
    here = scan_point_release(made)
    assert there.uids.tolist() == here.uids.tolist() == list(range(len(made)))
    assert there.counts.tolist() == here.counts.tolist()
    records = [slice(*made.offsets[r : r + 2]) for r in range(len(made))]
    for scan in (there, here):
        ends = (made.points.ms, 0), (made.points.ms, -1), (made.points.lng, 0), (made.points.lat, 0)
        assert [edge.tolist() for edge in scan.edges] == [[column[own][at] for own in records] for column, at in ends]
        assert not any(scan.odd[kind] for kind in ("unsorted", "wild", "fine"))
        published_columns = (made.points.ms, made.points.lng, made.points.lat)
        assert [column.tolist() for column in scan.columns] == [column.tolist() for column in published_columns]
    assert scan_points(Findings(), open_release_file(tmp_path / name), keep=False, run=Run(threads=1)).columns is None


@pytest.mark.parametrize(
    ("lng", "lat", "wild"), [(180.0, 90.0, 0), (-180.0, -90.0, 0), (180.0000001, 0.0, 1), (0.0, -90.0000001, 1)]
)
def test_a_degree_is_out_of_range_beyond_the_poles_and_the_antimeridian(lng, lat, wild):
    odd, values = Counter(), {"lat": np.array([lat]), "lng": np.array([lng])}
    _count_values(odd, Batch(np.ones(1, bool), values, None), Run(threads=1))
    assert odd["wild"] == wild


def twin_of_fixes(people, min_samples, min_active_days, align_days):
    """The original, as fixes.py should see it: written the slow way."""
    left = {"min_samples": 0, "min_active_days": 0}
    rows = {"repeated": 0, "of users left out": 0, "later days": 0}
    found = {}
    begun = min(ms for fixes in people.values() for ms, _, _ in fixes)
    for label, fixes in people.items():
        own = sorted(set(fixes))
        rows["repeated"] += len(fixes) - len(own)
        days = sorted({ms // DAY for ms, _, _ in own})
        if len(own) < min_samples:
            left["min_samples"] += 1
        elif len(days) < min_active_days:
            left["min_active_days"] += 1
        else:
            early = [row for row in own if not align_days or days.index(row[0] // DAY) < align_days]
            rows["later days"] += len(own) - len(early)
            shift = {day: (begun // DAY + n - day) * DAY if align_days else 0 for n, day in enumerate(days)}
            found[label] = [(ms + shift[ms // DAY], lng, lat) for ms, lng, lat in early]
            continue
        rows["of users left out"] += len(own)
    return found, *({rule: n for rule, n in count.items() if n} for count in (left, rows))


a_fix = st.tuples(
    st.integers(0, 6).map(lambda hour: 1_700_006_400_000 + hour * DAY // 2),
    st.sampled_from([116.25, 116.5]),
    st.sampled_from([39.5, 39.75]),
)


@examples(60)
@given(
    st.dictionaries(st.integers(0, 9), st.lists(a_fix, min_size=1, max_size=6), min_size=1, max_size=6),
    st.integers(1, 3),
    st.integers(1, 3),
    st.integers(0, 2),
    st.booleans(),
)
def test_fixes_are_the_twins(tmp_path_factory, people, few, days, align, keep):
    path = tmp_path_factory.mktemp("any") / "in.parquet"
    table = table_of(people)
    pq.write_table(table.take(np.random.default_rng(1).permutation(len(table))), path)
    wanted, outside, rows_outside = twin_of_fixes(people, few, days, align)
    found = fixes_of(path, keep=keep, min_samples=few, min_active_days=days, align_days=align)
    order = np.argsort([int(label) for label in found.labels.to_pylist()])
    assert [int(label) for label in found.labels.take(order).to_pylist()] == sorted(wanted)
    own = [wanted[label] for label in sorted(wanted)]
    assert found.first_ms[order].tolist() == [fixes[0][0] for fixes in own]
    assert found.last_ms[order].tolist() == [fixes[-1][0] for fixes in own]
    assert found.outside == outside
    if not keep and few == days == 1 and not align:
        assert found.columns is None  # repetitions don't matter then, and stay in the numbers
        assert found.counts[order].tolist() == [len(people[label]) for label in sorted(people)]
        return
    assert found.rows_outside == rows_outside
    assert found.counts[order].tolist() == [len(fixes) for fixes in own]
    assert (found.columns is not None) == keep
    if keep:
        offsets = found.columns.offsets
        columns = found.columns.ms, found.columns.lng, found.columns.lat
        for at, fixes in zip(order, own, strict=True):
            rows = slice(offsets[at], offsets[at + 1])
            assert list(zip(*(column[rows].tolist() for column in columns), strict=True)) == fixes


def test_fixes_of_traces_are_those_of_the_file(tmp_path):
    path = tmp_path / "in.parquet"
    pq.write_table(table_of(PEOPLE), path)
    for keep in (True, False):
        here, there = (fixes_of(original, keep=keep) for original in (TRACES, path))
        assert here.labels.cast("string").to_pylist() == there.labels.cast("string").to_pylist()
        assert here.counts.tolist() == there.counts.tolist() == [len(own) for own in PEOPLE.values()]
        assert here.first_ms.tolist() == there.first_ms.tolist() == [own[0][0] for own in PEOPLE.values()]
        assert here.last_ms.tolist() == there.last_ms.tolist() == [own[-1][0] for own in PEOPLE.values()]
        assert (here.columns is None) == (there.columns is None) == (not keep)
    with pytest.raises(TooLarge, match="`memory`"):
        fixes_of(path, memory=50_000)
    assert len(fixes_of(path, memory=50_000, keep=False).labels) == len(PEOPLE)


def test_rows_of_people_in_turn(tmp_path):
    path = tmp_path / "in.parquet"
    people = {7: [(4000, 1.0, 2.0), (9000, 1.0, 2.0), (6000, 1.0, 2.0)], 8: [(5000, 1.0, 2.0), (3000, 1.0, 2.0)]}
    pq.write_table(table_of(people).take([0, 3, 1, 4, 2]), path)
    found = fixes_of(path, keep=False)
    known = zip(found.counts.tolist(), found.first_ms.tolist(), found.last_ms.tolist(), strict=True)
    labels = found.labels.cast("string").to_pylist()
    assert dict(zip(labels, known, strict=True)) == {"7": (3, 4000, 9000), "8": (2, 3000, 5000)}


def test_fixes_that_can_not_be_had(tmp_path):
    (tmp_path / "in.csv").write_text("uid,datetime\n1,2020-01-01\n")
    with pytest.raises(CannotCheck, match="can't be read"):
        fixes_of(tmp_path / "in.csv")


OWN = [[(10 * n, 0.0, 0.0) for n in range(9)], [(5 + 10 * n, 1.0, 1.0) for n in range(6)]]


@pytest.mark.parametrize(
    ("records", "owners", "wanted", "found"),
    [
        ([OWN[1], OWN[0]], [1, 0], [*range(9, 15), *range(9)], []),
        ([OWN[0][2:5], OWN[0][5:], OWN[1][1:]], [0, 0, 1], [*range(2, 9), *range(10, 15)], []),
        ([OWN[0][4:], OWN[1]], [1, 0], None, [("truth/too-many-points", {"n": 1})]),
        ([OWN[0], [*OWN[1][:3], (26, 1.0, 1.0), *OWN[1][4:]]], [0, 1], None, [("truth/no-fix-then", {"n": 1})]),
        ([OWN[0][:5], OWN[0][3:]], [0, 0], None, [("truth/fix-repeated", {"n": 2})]),
    ],
)
def test_points_stand_for_fixes_of_their_owner(records, owners, wanted, found):
    findings = Findings()
    rows = check_times(findings, scan_of(records), np.array(owners), kept(OWN))
    assert (None if rows is None else rows.tolist()) == wanted
    assert findings.found == found
    with pytest.raises(CannotCheck):
        check_times(findings, scan_of(records), np.array(owners), OriginalFixes([], *[np.zeros(0)] * 3))


NOISE_MAKER = shoal.GeoIndistinguishability(epsilon=0.02)
NOISY = Claim("geo-indistinguishability", epsilon_per_m=0.02)


def noisy(epsilon, *, seed=3, parts=40, each=50, again=False):
    """Records around one place, with true noise; `again`: each point has the noise of the one before."""
    chance = np.random.default_rng(seed)
    own = [[(1000 * n, 10.0, 0.0) for n in range(part * each, (part + 1) * each)] for part in range(parts)]
    angle, radius = chance.uniform(0, 2 * np.pi, parts * each), chance.gamma(2, 1 / epsilon, parts * each)
    if again:
        angle, radius = np.repeat(angle[::2], 2), np.repeat(radius[::2], 2)
    lng, lat = 10 + radius * np.sin(angle) / 111_320, radius * np.cos(angle) / 110_574
    moved = iter(zip(lng.tolist(), lat.tolist(), strict=True))
    return own, [[(ms, *next(moved)) for ms, _, _ in record] for record in own]


def judged(own, records, owners, claim, monkeypatch=None, tried=None):
    if tried:
        monkeypatch.setattr(noise, "_TRIED", tried)
    scan, fixes = scan_of(records), kept([list(chain.from_iterable(own))])
    return judge(check_noise, scan, owners, fixes, np.arange(int(scan.counts.sum())), claim)


def test_the_total_is_that_of_the_person_with_most_points():
    own, records = noisy(0.02)
    owners = np.zeros(len(own), np.int64)
    owners[:3] = 1  # 37 records of 50 points are one person's
    for points, fails in ((37 * 50, False), (37 * 50 - 1, True)):
        claim = Claim("geo-indistinguishability", epsilon_per_m=0.02, total_per_m=0.02 * points)
        findings = judged(own, records, owners, claim)
        assert findings.codes == (["noise/total"] if fails else [])
    assert findings.figures["noise_points"] == 2000
    assert findings.figures["noise_claimed_mean_m"] == 100
    assert findings.figures["noise_mean_m"] == pytest.approx(100, rel=0.1)


@pytest.mark.parametrize("tried", [None, 1500])
def test_noise_that_is_used_twice(monkeypatch, tried):
    owners = np.zeros(40, np.int64)
    findings = judged(*noisy(0.02), owners, NOISY, monkeypatch, tried)
    assert not findings.failures
    assert findings.figures["noise_points"] == (tried or 2000)
    assert "noise/dependent" in judged(*noisy(0.02, again=True), owners, NOISY, monkeypatch, tried).codes


def test_noise_is_not_compared_across_records():
    """Two points a record, the last of each with the noise of the next one's first: nothing within a record."""
    own, records = noisy(0.02, parts=1500, each=2)
    for one, other in pairwise(records):
        other[0] = (other[0][0], *one[1][1:])
    assert "noise/dependent" not in judged(own, records, np.zeros(1500, np.int64), NOISY).codes


def test_points_and_fixes_are_kept_to_be_compared():
    own, records, owner = kept([[(0, 1.0, 2.0)]]), scan_of([[(0, 1.0, 2.0)]]), np.zeros(1, np.int64)
    for fixes, scan in ((replace(own, columns=None), records), (own, replace(records, columns=None))):
        with pytest.raises(CannotCheck, match="must be kept"):
            check_times(Findings(), scan, owner, fixes)


def test_points_to_look_at_are_drawn_once(monkeypatch):
    monkeypatch.setattr(noise, "_TRIED", 50)
    assert noise._some(50).tolist() == list(range(50))
    drawn = noise._some(51)
    assert len(drawn) == 50
    assert (np.diff(drawn) > 0).all()
    assert set(drawn) < set(range(51))


def test_few_points_tell_little():
    for each, found in ((25, []), (24, [("few-points", {"n": 960, "few": 1000})])):
        assert judged(*noisy(0.02, each=each), np.zeros(40, np.int64), NOISY).found == found


def said(code, *skipped, **facts):
    """Return the sentence of a note at the end of a verdict."""
    left_out = "; ".join(NOT_CHECKED[what] for what in skipped)
    return NOTES[code].format(**facts, rest=f", except {left_out}" if skipped else "")


def test_what_is_said_of_points_in_memory():
    smooth, noised = (verify(TRACES, made) for made in (smoothed(), NOISE_MAKER.anonymize(TRACES)))
    for verdict, code in ((smooth, "points-only"), (noised, "points-hold")):
        assert verdict.ok, verdict.messages
        assert verdict.messages[0] == NOTES["in-memory"]
        assert verdict.messages[-1] == said(code, "file", users=25)
        assert verdict.not_checked == (NOT_CHECKED["file"],)
    assert set(smooth.checked) == {"audit", "truth", "steps"}
    assert smooth.figures["users"] == 25
    assert smooth.figures["samples"] == sum(map(len, PEOPLE.values()))


def test_what_is_said_of_a_file_without_an_audit(tmp_path):
    NOISE_MAKER.anonymize(TRACES).write(tmp_path / "r.parquet")
    with pytest.raises(CannotCheck, match="`audit`"):
        verify(TRACES, tmp_path / "r.parquet")
    smoothed().write(tmp_path / "s.parquet")
    verdict = verify(TRACES, tmp_path / "s.parquet")
    assert verdict.ok
    assert verdict.messages[-1] == said("points-only", "owners", users=25)
    other = verify(traces_of({1: walk(1)}), tmp_path / "s.parquet", audit=None)
    assert other.figures["users"] == 1


def test_nothing_published():
    far = traces_of({n: walk(n, pace_m=0.1) for n in range(3)})
    verdict = verify(far, shoal.Promesse(step=5000).anonymize(far))
    assert verdict.codes == ("truth/empty",)
    assert NOTES["not-checked"].format(what=NOT_CHECKED["file"]) in verdict.messages


@pytest.mark.parametrize(("start", "stop"), [(-1, 0), (0, 1)])
def test_times_outside_the_owners(tmp_path, start, stop):
    """Original fixes that begin later, or end earlier, than what was published."""
    path, audit = tmp_path / "r.parquet", tmp_path / "a.parquet"
    smoothed(20).write(path, audit=audit)
    cut = {n: own[12 * -start : len(own) - 12 * stop] if n < 104 else own for n, own in PEOPLE.items()}
    assert verify(TRACES, path, audit=audit).ok
    verdict = verify(traces_of(cut), path, audit=audit)
    assert PROBLEMS["truth/outside-time"].format(n=4) in verdict.problems
    assert verdict.not_checked == ()


def test_rows_out_of_order_from_one_batch_to_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(published, "_BATCH", 4)
    path = tmp_path / "r.parquet"
    smoothed(50).write(path)
    table = pq.read_table(path).slice(0, 9)
    for moved, wrong in (({}, 0), ({3: 4, 4: 3}, 1), ({2: 3, 3: 2}, 1), ({3: 4}, 0), ({7: 8, 8: 7}, 1), ({0: 8}, 1)):
        pq.write_table(table.take([moved.get(row, row) for row in range(9)]), path)
        assert scan_points(Findings(), open_release_file(path), keep=False).odd["unsorted"] == wrong
    uid = table.column_names.index("uid")
    for numbers, wrong in (([0, 0, 0, 0, 1, 1, 1, 1, 1], 0), ([1, 1, 1, 1, 0, 0, 0, 0, 0], 1)):
        pq.write_table(table.set_column(uid, table.schema.field("uid"), [numbers]), path)
        scan = scan_points(Findings(), open_release_file(path), keep=False)
        assert scan.odd["unsorted"] == wrong
        assert scan.counts.tolist() == [4, 5]


def test_a_file_without_rows(tmp_path):
    path = tmp_path / "r.parquet"
    smoothed().write(path)
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    scan = scan_points(Findings(), open_release_file(path), keep=True)
    assert len(scan) == len(scan.counts) == len(scan.edges[0]) == 0
    assert scan.columns is None
    verdict = verify(TRACES, path)
    assert {"truth", "integrity"} <= set(verdict.failures)
    assert "truth/empty" in verdict.codes


def test_fixes_in_metres_become_degrees(tmp_path):
    """Places in UTM zone 50, whose central meridian is 117° E, where it is 500 km east and 0.9996 of true size."""
    path = tmp_path / "in.parquet"
    hour = pa.array([0, 3_600_000], pa.timestamp("ms", "UTC"))
    pq.write_table(
        pa.table({"uid": [1, 1], "datetime": hour, "x": [500_000.0, 500_000.0], "y": [0.0, 110_530.0]}), path
    )
    found = fixes_of(path, crs="EPSG:32650").columns
    assert found.lng.tolist() == pytest.approx([117.0, 117.0], abs=1e-9)
    assert found.lat.tolist() == pytest.approx([0.0, 1.0], abs=1e-3)


@pytest.mark.parametrize("there", [(), ("lng",), ("lat",), ("east",), ("north",), ("lng", "north")])
def test_fixes_without_places_are_refused(there):
    events = SimpleNamespace(
        **{name: np.zeros(1) if name in there else None for name in ("lng", "lat", "east", "north")}
    )
    with pytest.raises(CannotCheck, match="no places"):
        fixes_module._degrees(events, ReadOptions(crs="EPSG:32650"))


def even(n, share=0.0, fold=1):
    """Angles all round, except a share of them in `fold` directions opposite each other."""
    given = round(n * share)
    return np.concatenate([2 * np.pi * np.arange(given) / fold, 2 * np.pi * np.arange(n - given) / (n - given)])


def exact(n, epsilon=0.02):
    """Distances just as they should be: one in each n-th of the distribution."""
    grid = np.linspace(0, 3000, 300_001)
    return np.interp((np.arange(n) + 0.5) / n, 1 - (1 + epsilon * grid) * np.exp(-epsilon * grid), grid)


NO_PAIR = ((np.empty(0), np.empty(0)),) * 2


@pytest.mark.parametrize(
    ("share", "fold", "fails"), [(0.0, 1, False), *((s, n, s > 0.103) for s in (0.101, 0.105) for n in (1, 2))]
)
def test_directions_are_judged_at_six_and_a_half_sigmas(share, fold, fails):
    findings = judge(compare_with_laplace, 0.02, (even(2000, share, fold), exact(2000)), NO_PAIR)
    assert findings.codes == (["noise/direction"] if fails else [])


@pytest.mark.parametrize(("shift", "fails"), [(0.0, False), (0.08, False), (0.1, True), (-0.08, False), (-0.1, True)])
def test_distances_are_judged_by_the_largest_gap(shift, fails):
    """With 1,000 points the distribution function may be off by 0.0918, either way."""
    u = np.clip((np.arange(1000) + 0.5) / 1000 + shift, 0.03, 1 - 1e-6)  # nobody is left where she was
    metres = np.interp(u, (np.arange(1000) + 0.5) / 1000, exact(1000))
    findings = judge(compare_with_laplace, 0.02, (even(1000), metres), NO_PAIR)
    assert findings.codes == (["noise/distances"] if fails else [])


@pytest.mark.parametrize(
    ("turn", "rank", "m", "fails"),
    [
        (0.380, 0.0, 100, False), (0.395, 0.0, 100, True), (-0.395, 0.0, 100, True),
        (0.0, 0.2121, 100, False), (0.0, 0.2160, 100, True), (1.0, 0.49, 1, False), (1.0, 0.49, 40, True),
    ],
)  # fmt: skip
def test_successive_noise_is_judged_at_five_and_a_half_sigmas(turn, rank, m, fails):
    """Mean cosines of the turn, times the root of 2 m; mean products of ranks, times twelve roots of m."""
    before, after = np.zeros(m), np.where(np.arange(m) % 2, 1, -1) * np.arccos(turn)
    far = float(np.interp(0.5 + rank, (np.arange(9999) + 0.5) / 9999, exact(9999)))
    pair = (before, np.full(m, far)), (after, np.full(m, far))
    findings = judge(compare_with_laplace, 0.02, (even(2000), exact(2000)), pair)
    assert findings.codes == (["noise/dependent"] if fails else [])


def test_a_file_that_states_nothing_or_what_nobody_understands(tmp_path):
    path = tmp_path / "r.parquet"
    smoothed().write(path)
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({"shoal": '{"format": "none"}'}), path)
    verdict = verify(TRACES, path)
    assert "integrity/header" in verdict.codes
    assert verdict.claim == Claim("none", why="unreadable")
    pq.write_table(table.replace_schema_metadata(None), path)
    path.with_name("r.parquet.manifest.json").unlink()
    with pytest.raises(CannotCheck, match="claims nothing"):
        verify(TRACES, path)
