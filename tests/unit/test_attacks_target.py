"""What attacks are played with: files and memory, other tools' releases, the control, errors; intervals."""

import inspect
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from scipy.stats import binomtest

import shoal
from shoal.attacks import ATTACKS, Attack, known_attacks, open_target, play, register, setting_names
from shoal.attacks.outcome import Outcome, crowd, rate
from shoal.errors import CannotCheck, SettingsError
from shoal.reading.options import ReadOptions
from shoal.seen.cover import count_cover
from shoal.settings import Settings, setting
from shoal.units import Seconds
from tests.people import lists_of, random_people
from tests.releases import CRS, grouped, ring, toy_people
from tests.targets import target_of

BOX = ["uid", "t_start", "t_end", "x_min", "y_min", "x_max", "y_max"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A release with its audit, and the events it was made of."""
    folder = tmp_path_factory.mktemp("made")
    people = toy_people(users=30)
    frame = people.to_pandas()
    frame["datetime"] = frame["datetime"].astype("datetime64[ms, UTC]")
    table = pa.Table.from_pandas(frame[["uid", "datetime", "lat", "lng"]], preserve_index=False)
    pq.write_table(table, folder / "events.parquet")
    release, audit = grouped(people, 3).write(folder)
    return people, folder / "events.parquet", release, audit


def test_shares_have_intervals():
    wanted = binomtest(3, 10).proportion_ci(method="wilson")
    low, high = (pytest.approx(edge) for edge in wanted)
    assert rate("won", 3, 10) == {"won": 0.3, "won_low": low, "won_high": high}


def test_nothing_tried():
    assert rate("won", 0, 0) == {"won": None, "won_low": 0, "won_high": 1}
    assert set(crowd(np.empty(0, dtype=np.int64)).values()) == {None}


def test_outcomes_are_plain(made):
    people, _, release, _ = made
    outcome = shoal.attack(people, release, "window", epsilon=60)
    assert json.loads(json.dumps(outcome.to_dict()))["rows"] == outcome.rows
    assert not Outcome("points", {}, 1, [], failures=("x",)).ok


def test_files_and_memory_give_the_same(made):
    people, events, release, audit = made
    target = open_target(str(events), release, audit=audit, options=ReadOptions(tz="Asia/Shanghai"))
    assert target.tz == "Asia/Shanghai"
    assert (str(target.claim), target.k, target.promise) == ("k-anonymity(3)", 3, 1 / 3)
    here, read = lists_of(people), lists_of(target.people)
    order = {label: n for n, label in enumerate(people.labels.to_pylist())}
    assert read == [here[order[int(label)]] for label in target.people.labels.to_pylist()]
    assert len(read) == len(people)


def test_the_audit_tells_who_is_who(made):
    people, _, release, audit = made
    target = open_target(people, release, audit=audit)
    table = pq.read_table(audit).to_pylist()
    names = people.labels.cast(pa.string()).to_pylist()
    assert {(r, names[u]) for r, u in enumerate(target.owner.tolist())} == {
        (row["record"], row["owner"]) for row in table
    }
    offsets, users = target.members
    pairs = {(r, names[u]) for r in range(len(offsets) - 1) for u in users[offsets[r] : offsets[r + 1]].tolist()}
    assert pairs == {(row["record"], row["member"]) for row in table}
    assert [target.owner[r] for r in target.own] == list(range(len(people)))
    assert open_target(people, release).own is None


def test_a_release_in_memory_knows_its_own():
    people = random_people(20, seed=1)
    target = open_target(people, shoal.Shoal(k=2).anonymize(people))
    assert target.own is not None
    assert not target.suppressed


def test_the_control_is_everybodys_raw_data(made):
    people, _, release, _ = made
    control = open_target(people, release).control()
    assert len(control.records) == len(people)
    assert control.records.unique.sound.all()
    assert count_cover(control.people, control.records.unique, np.arange(len(people))).tolist() == [1] * len(people)
    assert control.owner.tolist() == control.own.tolist() == list(range(len(people)))
    assert play(control, "points", points=4).rows[0]["success"] == 1


def test_samples_of_one_slot_share_a_box_in_the_control():
    people = [[(1, 1, 1), (1, 4, 0), (2, 2, 2)], [(1, 1, 1)]]
    control = target_of(people, [([(1, 2, 0, 9, 0, 9)], 2)]).control()
    kinds = control.records.groups
    boxes = [control.records.unique.boxes[control.records.unique.rows(kinds[u : u + 1])].tolist() for u in (0, 1)]
    assert boxes == [[[1, 1, 1, 4, 0, 1], [2, 2, 2, 2, 2, 2]], [[1, 1, 1, 1, 1, 1]]]


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_another_tools_release_with_the_box_columns_only(made, tmp_path, ending):
    people, events, release, _ = made
    path = tmp_path / f"other.{ending}"
    table = pq.read_table(release).select(BOX).replace_schema_metadata(None)
    if ending == "csv":
        for place, name in ((1, "t_start"), (2, "t_end")):
            texts = np.datetime_as_string(table[name].to_numpy().astype("datetime64[ms]")).tolist()
            table = table.set_column(place, name, pa.array([text + "Z" for text in texts]))
        pa_csv.write_csv(table, path, pa_csv.WriteOptions(quoting_style="none"))
    else:
        pq.write_table(table, path)
    options = ReadOptions(crs=CRS, cell=100, slot=60)
    outcome = shoal.attack(str(events), path, "points", options=options, k=3)
    own = shoal.attack(str(events), release, "points")
    assert outcome.rows == own.rows
    assert outcome.figures["claim"] == "none (unclaimed)"
    with pytest.raises(CannotCheck, match="`cell` and `slot`"):
        shoal.attack(str(events), path, "points")
    assert shoal.attack(people, path, "points").figures["k"] is None


def test_releases_that_can_not_be_attacked(made, tmp_path):
    people, events, release, _ = made
    table = pq.read_table(release)
    cases = {
        "points": (table.select(["uid", "datetime", "lat", "lng"]), "points, not boxes"),
        "short": (table.drop_columns("t_end"), "t_start, t_end, x_min"),
        "empty": (table.slice(0, 0), "no record"),
        "nulls": (table.set_column(3, "x_min", pa.nulls(len(table), pa.int32())), "can't be read"),
    }
    for name, (content, hint) in cases.items():
        pq.write_table(content, tmp_path / f"{name}.parquet")
        with pytest.raises(CannotCheck, match=hint):
            open_target(people, tmp_path / f"{name}.parquet")
    (tmp_path / "text.parquet").write_text("no parquet")
    with pytest.raises(CannotCheck, match="can't be read"):
        open_target(str(events), tmp_path / "text.parquet")
    with pytest.raises(CannotCheck, match="another grid"):
        open_target(random_people(9), release)


def test_an_audit_of_something_else(made, tmp_path):
    people, _, release, _ = made
    (tmp_path / "other").mkdir()
    _, audit = ring(toy_people(users=31), 3).write(tmp_path / "other")
    with pytest.raises(CannotCheck, match="does not belong"):
        open_target(people, release, audit=audit)


def test_attacks_are_named(made):
    people, _, release, _ = made
    for name, match, options in (
        ("magic", "points, top-locations, home-work, window", {}), ("points", "tau", {"tau": "60s"}),
        ("points", "one release", {"other": release}), ("points", "k must be", {"k": 0}),
    ):  # fmt: skip
        with pytest.raises(SettingsError, match=match):
            shoal.attack(people, release, name, **options)
    target = open_target(people, release)
    boxes = {name: entry for name, entry in ATTACKS.items() if not entry.on_traces}
    plain = [name for name, entry in boxes.items() if not (entry.needs_audit or entry.needs_other)]
    assert known_attacks("boxes") == plain
    assert known_attacks("boxes", audit=True, other=True) == list(boxes)
    with pytest.raises(SettingsError, match="no setting tau"):
        play(target, "points", tau=3600)
    for name in (name for name, entry in ATTACKS.items() if entry.needs_audit):
        with pytest.raises(CannotCheck, match="`audit`"):
            play(target, name)


def test_the_signature_has_the_settings_of_all_attacks():
    """Type checkers need the names written there."""
    taken = inspect.signature(shoal.attack).parameters
    common = (
        "original release attack victims seed audit run_record k other other_original other_audit options run reading"
    )
    assert [name for name in taken if name not in common.split()] == setting_names()


def test_a_new_attack_is_one_declaration(made, monkeypatch):
    class Slow(Settings):
        pause: Seconds = setting(60, unit="s", help="How long to wait.", gt=0)

    def wait(target, *, victims, seed, run, pause):
        return Outcome("wait", {"pause_s": pause}, victims, [])

    monkeypatch.setitem(ATTACKS, "wait", None)  # gone when the test ends
    register(Attack("wait", wait, "nothing", Slow))
    people, _, release, _ = made
    assert shoal.attack(people, release, "wait", pause="2min").settings == {"pause_s": 120}
    assert "wait" in known_attacks("boxes")
    with pytest.raises(SettingsError, match="pause: must be above 0"):
        shoal.attack(people, release, "wait", pause=0)


def test_reading_options_may_be_keywords(made):
    _, events, release, _ = made
    outcome = shoal.attack(str(events), release, "home-work", tz="Asia/Shanghai", victims=5)
    assert outcome.settings["tz"] == "Asia/Shanghai"
