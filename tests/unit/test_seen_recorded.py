"""Reading options travel in the private run record; without it, a failure that looks like shifted time says so."""

import json
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import CannotCheck
from shoal.seen.recorded import Recorded, recorded_reading

TZ = "America/New_York"


@pytest.fixture(scope="module")
def made(events, tmp_path_factory):
    """Events in local time, and a release of them that was read with its zone and screening; all in one folder."""
    folder = tmp_path_factory.mktemp("recorded")
    table = pq.read_table(events)
    naive = table["datetime"].cast(pa.timestamp("ms"))
    pq.write_table(table.set_column(table.column_names.index("datetime"), "datetime", naive), folder / "e.parquet")
    shoal.publish(
        folder / "e.parquet",
        folder / "r.parquet",
        shoal.Shoal(k=3),
        audit=folder / "a.parquet",
        tz=TZ,
        min_samples=3,
    )
    noisy = shoal.GeoIndistinguishability(epsilon=0.01)
    shoal.publish(folder / "e.parquet", folder / "p.parquet", noisy, audit=folder / "pa.parquet", tz=TZ)
    return folder


@pytest.fixture
def copy(made, tmp_path):
    """A copy of that folder that a test may change."""
    return shutil.copytree(made, tmp_path / "copy")


def test_the_record_is_written_beside_the_audit_and_read_again(made):
    record = json.loads((made / "r.parquet.run.json").read_text())
    assert (made / "r.parquet.run.json").stat().st_mode & 0o777 == 0o600
    assert record["files"] == json.loads((made / "r.parquet.manifest.json").read_text())["files"]
    assert (record["read"]["tz"], record["read"]["min_samples"]) == (TZ, 3)
    for audit in (None, made / "a.parquet"):
        verdict = shoal.verify(made / "e.parquet", made / "r.parquet", audit=audit)
        assert verdict.ok
        assert "come from the run record r.parquet.run.json: --tz, --min-samples." in " ".join(verdict.messages)
    same = shoal.verify(made / "e.parquet", made / "r.parquet", tz=TZ, min_samples=3)
    assert same.ok
    assert "run record" not in " ".join(same.messages)


def test_given_options_win_and_are_named(made):
    verdict = shoal.verify(made / "e.parquet", made / "r.parquet", tz="UTC")
    assert not verdict.ok
    said = " ".join(verdict.messages)
    assert "other reading options: --tz." in said
    assert "+5 h apart" in said
    assert "come from the run record r.parquet.run.json: --min-samples." in said


@pytest.mark.parametrize("audit", [True, False])
def test_without_the_record_a_shift_is_named(copy, audit):
    (copy / "r.parquet.run.json").unlink()
    options = {"audit": copy / "a.parquet"} if audit else {}
    verdict = shoal.verify(copy / "e.parquet", copy / "r.parquet", min_samples=3, **options)
    assert not verdict.ok
    assert "The release lies +5 h apart from the original" in " ".join(verdict.messages)
    assert "`tz`" in " ".join(verdict.messages)
    assert "h apart" not in " ".join(shoal.verify(copy / "e.parquet", copy / "r.parquet", tz=TZ, k=99).messages)


def test_without_the_record_missing_options_are_named(copy):
    (copy / "r.parquet.run.json").unlink()
    people = pq.read_table(copy / "e.parquet")
    pq.write_table(people.slice(0, people.num_rows // 2), copy / "e.parquet")
    for options in ({}, {"tz": TZ}, {"tz": "UTC", "period": "2020-01-01,2030-01-01"}):
        said = " ".join(shoal.verify(copy / "e.parquet", copy / "r.parquet", k=50, **options).messages)
        assert "No run record was found" in said or "h apart" in said


def test_attack_and_evaluate_do_not_answer_for_another_zone(copy):
    events, release = copy / "e.parquet", copy / "r.parquet"
    known = [shoal.attack(events, release, victims=20).rows, shoal.evaluate(events, release, queries=20).figures]
    given = {"tz": TZ, "min_samples": 3}
    assert known[0] == shoal.attack(events, release, victims=20, **given).rows
    assert known[1] == shoal.evaluate(events, release, queries=20, **given).figures
    assert shoal.evaluate(events, release, queries=20).seconds > 0
    (copy / "r.parquet.run.json").unlink()
    for judge in (shoal.attack, shoal.evaluate):
        with pytest.raises(CannotCheck, match=r"\+5 h apart .*`tz`"):
            judge(events, release)
    assert shoal.evaluate(events, release, queries=20, tz="UTC").seconds is None  # as asked


def test_points_are_read_as_recorded(copy):
    events, release, audit = copy / "e.parquet", copy / "p.parquet", copy / "pa.parquet"
    assert shoal.verify(events, release, audit=audit).ok
    (copy / "p.parquet.run.json").unlink()
    verdict = shoal.verify(events, release, audit=audit)
    assert not verdict.ok
    assert "+5 h apart" in " ".join(verdict.messages)


def test_a_record_is_found_beside_the_audit_or_named(copy, tmp_path):
    private = tmp_path / "private"
    private.mkdir()
    for name in ("a.parquet", "r.parquet.run.json"):
        (copy / name).rename(private / name)
    events, release = copy / "e.parquet", copy / "r.parquet"
    assert not shoal.verify(events, release).ok
    assert shoal.verify(events, release, audit=private / "a.parquet").ok
    assert shoal.verify(events, release, run_record=private / "r.parquet.run.json").ok


def test_the_record_of_another_release_is_not_used(copy):
    events, release, record = copy / "e.parquet", copy / "r.parquet", copy / "r.parquet.run.json"
    record.write_bytes((copy / "p.parquet.run.json").read_bytes())
    assert "is the run record of another release; it was not used" in " ".join(shoal.verify(events, release).messages)
    with pytest.raises(CannotCheck, match="of another release"):
        shoal.verify(events, release, run_record=record)
    for broken in (b"", b"[]", b"{", b"\0"):
        record.write_bytes(broken)
        with pytest.raises(CannotCheck, match="run record can't be read"):
            shoal.verify(events, release, run_record=record)
    with pytest.raises(CannotCheck, match="run record can't be read"):
        shoal.verify(events, release, run_record=copy / "none.json")
    whole = json.loads((copy / "p.parquet.run.json").read_text())
    record = copy / "p.parquet.run.json"
    record.write_text(json.dumps({**whole, "read": {"nonsense": 1}}))
    with pytest.raises(CannotCheck, match="reading options that are not known"):
        shoal.verify(events, copy / "p.parquet", audit=copy / "pa.parquet")


def test_an_audit_of_another_release_is_suspected(copy):
    """The release was made anew without an audit: the old audit and run record are still there."""
    shoal.publish(copy / "e.parquet", copy / "r.parquet", shoal.KScale(k=2), tz=TZ, min_samples=3, overwrite=True)
    verdict = shoal.verify(copy / "e.parquet", copy / "r.parquet", audit=copy / "a.parquet", tz=TZ, min_samples=3)
    assert not verdict.ok
    said = " ".join(verdict.messages)
    assert "So is probably the audit file" in said
    assert "No run record was found" not in said
    with pytest.raises(CannotCheck, match=r"gone\.parquet: there is no such audit file"):
        shoal.verify(copy / "e.parquet", copy / "r.parquet", audit=copy / "gone.parquet")


def test_a_wrong_column_is_suspected(copy):
    table = pq.read_table(copy / "e.parquet")
    numbered = table.append_column("row", pa.array(range(table.num_rows)))
    pq.write_table(numbered, copy / "e.parquet")
    verdict = shoal.verify(copy / "e.parquet", copy / "r.parquet", columns="user=row", min_samples=0)
    assert not verdict.ok
    assert "perhaps another column is the user" in " ".join(verdict.messages)


def test_without_a_manifest_the_file_itself_is_compared(copy):
    (copy / "r.parquet.manifest.json").unlink()
    found = recorded_reading("e", copy / "r.parquet", None)
    assert (found.options.tz, found.taken) == (TZ, ("tz", "min_samples"))
    with (copy / "r.parquet").open("ab") as file:
        file.write(b"x")
    assert recorded_reading("e", copy / "r.parquet", None).strange == "r.parquet.run.json"


def test_a_written_release_remembers_how_its_people_were_read(made, tmp_path):
    people = shoal.read(made / "e.parquet", tz=TZ, min_samples=3)
    shoal.KScale(k=2).anonymize(people).write(tmp_path / "w.parquet", audit=tmp_path / "wa.parquet")
    assert shoal.verify(made / "e.parquet", tmp_path / "w.parquet").ok
    people = shoal.Trajectories(*people.arrays, people.frame, people.labels)  # who come from nowhere
    shoal.KScale(k=2).anonymize(people).write(tmp_path / "n.parquet", audit=tmp_path / "na.parquet")
    assert "read" not in json.loads((tmp_path / "n.parquet.run.json").read_text())
    assert shoal.verify(made / "e.parquet", tmp_path / "n.parquet", tz=TZ, min_samples=3).ok


@pytest.mark.parametrize(
    ("release", "hours"),
    [
        ((28_800, 118_800), 8),
        ((-19_800, 70_200), -5.5),
        ((28_800, 115_200), 8),  # the clocks changed in between
        ((0, 90_000), None),
        ((100, 90_100), None),  # no zones are so near each other
        ((-3_600, 93_600), None),  # coarser, not shifted
        ((3_600, 86_400), None),  # the ends are left out
        ((80_000, 170_000), None),  # no zones are so far apart
        ((7_200, 105_000), None),
    ],
)
def test_what_looks_like_another_zone(release, hours):
    assert Recorded(options=None).apart((0, 90_000), release) == hours
    Recorded(options=shoal.ReadOptions(tz="UTC")).require_same_zone((0, 90_000), release)  # as asked
    Recorded(options=None, file="r.run.json").require_same_zone((0, 90_000), release)


def test_on_the_command_line(run, copy):
    events, release = copy / "e.parquet", copy / "r.parquet"
    out = run("verify", events, release, check=0).stdout
    assert "r.parquet.run.json: --tz, --min-samples" in " ".join(out.split())
    assert "note: Reading options" in run("attack", events, release, "--victims", "9", check=0).stdout
    assert "note: Reading options" in run("evaluate", events, release, "--queries", "9", check=0).stdout
    (copy / "r.parquet.run.json").rename(copy / "x.json")
    assert "+5 h apart" in run("verify", events, release, check=1).stdout
    assert "--tz" in run("attack", events, release, check=2).stderr
    for flag in ("--run-record", "--options-from"):
        run("verify", events, release, flag, copy / "x.json", check=0)
        run("attack", events, release, flag, copy / "x.json", "--victims", "9", check=0)
        run("evaluate", events, release, flag, copy / "x.json", "--queries", "9", check=0)
