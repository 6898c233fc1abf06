"""Releases in PostgreSQL: what the table holds is verified before anybody sees it, and again by anybody later."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal import pipeline
from shoal.errors import AlreadyExists, CannotCheck, NotVerified, OutputError, SettingsError, UnreadableFile
from shoal.publishing.targets import postgres
from shoal.run import LOCAL
from shoal.seen.stores import brought
from shoal.stores.postgres import Session
from shoal.stores.released import RowHash, row_hash

METHODS = {
    "boxes": (shoal.Shoal(k=2), {}),
    "compact": (shoal.Shoal(k=2), {"compact": True}),
    "points": (shoal.Promesse(step=200), {}),
}
PLAIN = ["uid", "t_start", "t_end", "x_min", "y_min", "x_max", "y_max", "datetime", "lat", "lng"]


@pytest.fixture(scope="module")
def released(server, one_day, tmp_path_factory):
    """A release in a database that tests only read, and its audit."""
    from tests.stores.conftest import made

    with made(server) as database:
        audit = tmp_path_factory.mktemp("audit") / "audit.parquet"
        shoal.publish(one_day, database.table("march"), shoal.Shoal(k=2), audit=audit)
        yield database, audit


@pytest.mark.parametrize("kind", METHODS)
def test_a_release_in_a_table_is_that_of_a_file(one_day, database, tmp_path, kind):
    method, how = METHODS[kind]
    done = shoal.publish(one_day, database.table("march"), method, seed=1, **how)
    shoal.publish(one_day, tmp_path / "r.parquet", method, seed=1, **how)
    assert done.verdict.ok
    with brought(database.table("march"), LOCAL) as file:
        held, written = pq.read_table(file), pq.read_table(tmp_path / "r.parquet")
        expected = [*written.column_names, *(["geometry"] if kind != "points" else [])]
        assert held.column_names == expected
        assert (
            held.drop_columns(list({"geometry"} & {*held.column_names}))
            .replace_schema_metadata(None)
            .equals(written.replace_schema_metadata(None))
        )
    assert database.tables() == ["march"]
    back = shoal.read_release(database.table("march"))
    assert (len(back), back.claim) == (len(done.release), done.release.claim)
    assert shoal.verify(one_day, database.table("march")).ok
    shape = "Point" if kind == "points" else "Polygon"
    (found,) = database.sql("SELECT DISTINCT geometrytype(geom), st_srid(geom) FROM march")
    assert found == (shape.upper(), 4326)
    if kind == "points":
        assert database.sql("SELECT count(*) FROM march WHERE st_x(geom) <> lng OR st_y(geom) <> lat") == [(0,)]
    else:
        inside = "t_range @> datetime AND st_contains(geom, st_setsrid(st_makepoint(lng, lat), 4326))"
        assert database.sql(f"SELECT count(*) FROM march WHERE NOT ({inside})") == [(0,)]


def test_the_command_line(one_day, database, run, tmp_path):
    table = database.table("public.march")
    done = run("anonymize", one_day, table, "--k", 2, "--audit", "a.parquet", "--run-record", "r.json", check=0)
    assert "postgresql://…?table=public.march" in done.stdout
    run("verify", one_day, table, "--k", 2, "--audit", "a.parquet", check=0)
    run("verify", one_day, table, "--k", 50, check=1)
    run("attack", one_day, table, "--attack", "all", "--victims", 20, "--audit", "a.parquet", check=0)
    run("evaluate", one_day, table, "--audit", "a.parquet", "--queries", 50, check=0)
    again = run("anonymize", one_day, table, "--k", 2, check=2)
    assert "is there already" in again.stderr
    events = "SELECT uid, t_start AS datetime, lat, lng FROM march"
    for command in (["inspect"], ["measure", "--k", 2], ["compare", "--methods", "k-scale"]):
        run(command[0], database.query(events), *command[1:], check=0)
    run("anonymize", database.query(events), "out.parquet", "--k", 2, check=0)
    run("verify", database.query(events), "out.parquet", check=0)


def test_without_postgis(one_day, plain_database, tmp_path):
    database = plain_database
    for kind, (method, how) in METHODS.items():
        shoal.publish(one_day, database.table(kind), method, **how)
        assert shoal.verify(one_day, database.table(kind)).ok
    with pytest.raises(SettingsError, match="needs PostGIS"):
        shoal.publish(one_day, database.table("other"), shoal.Shoal(k=2), geo=True)
    assert database.tables() == sorted(METHODS)


def test_grid_cells_without_geography(database):
    days = pa.table(
        {
            "uid": [n % 4 for n in range(40)],
            "d": [0] * 40,
            "t": [n // 4 for n in range(40)],
            "x": [5] * 40,
            "y": [6] * 40,
        }
    )
    database.load("events", days)
    how = {"slot": "30min", "cell": "500m"}
    shoal.publish(database.table("events"), database.table("r"), shoal.Shoal(k=2), **how)
    assert shoal.verify(database.table("events"), database.table("r"), **how).ok
    names = [
        name
        for (name,) in database.sql(
            "SELECT attname FROM pg_attribute WHERE attrelid = 'r'::regclass AND attnum > 0 ORDER BY attnum"
        )
    ]
    assert names == [*PLAIN[:-2], "t_range"]


def test_a_release_that_was_made_in_python(one_day, database):
    release = shoal.Shoal(k=2).anonymize(shoal.read(one_day))
    release.write(database.table("march"))
    assert shoal.verify(one_day, database.table("march")).ok


def seen_meanwhile(monkeypatch, look):
    """Call `look` while a release is verified."""
    verify = pipeline.verify

    def looking(*arguments, **how):
        look()
        return verify(*arguments, **how)

    monkeypatch.setattr(pipeline, "verify", looking)


def test_nothing_is_visible_before_the_commit(one_day, database, monkeypatch, tmp_path):
    seen = []
    seen_meanwhile(monkeypatch, lambda: seen.append((database.tables(), [path.name for path in tmp_path.glob("a*")])))
    shoal.publish(one_day, database.table("march"), shoal.Shoal(k=2), audit=tmp_path / "audit.parquet")
    assert seen == [([], [])]
    assert database.tables() == ["march"]
    assert {path.name for path in tmp_path.iterdir()} == {"audit.parquet", "march.parquet.run.json"}


def test_others_see_the_old_release_until_it_is_replaced(one_day, database, monkeypatch):
    shoal.publish(one_day, database.table("march"), shoal.Shoal(k=2))
    rows = "SELECT obj_description('march'::regclass), count(*), min(oid) FROM march, pg_class WHERE relname = 'march'"
    before, seen = database.sql(rows), []
    seen_meanwhile(monkeypatch, lambda: seen.append((database.tables(), database.sql(rows))))
    shoal.publish(one_day, database.table("march"), shoal.Shoal(k=3), overwrite=True)
    assert seen == [(["march"], before)]
    assert database.tables() == ["march"]
    assert database.sql(rows) != before
    assert shoal.read_release(database.table("march")).claim.k == 3


TAMPERED = {
    "value": "UPDATE {} SET x_max = x_max + 100, lng = lng WHERE uid = 0",
    "row": "DELETE FROM {} WHERE uid = 0",
    "more": "INSERT INTO {0} (uid, t_start, t_end, x_min, y_min, x_max, y_max, datetime, lat, lng, geom) "
    "SELECT uid, t_start, t_end, x_min, y_min, x_max, y_max, datetime, lat, lng, geom FROM {0} LIMIT 1",
    "place": "UPDATE {} SET geom = st_translate(geom, 1e-9, 0) WHERE uid = 0",
    "srid": "ALTER TABLE {0} ALTER geom TYPE geometry(Polygon, 4258) USING st_setsrid(geom, 4258)",
    "range": "ALTER TABLE {0} ALTER t_range DROP EXPRESSION; UPDATE {0} SET t_range = NULL WHERE uid = 0",
    "time": "UPDATE {} SET t_start = t_start + interval '1 microsecond' WHERE uid = 0",
    "null": "ALTER TABLE {0} ALTER lat DROP NOT NULL; UPDATE {0} SET lat = NULL WHERE uid = 0",
    "column": "ALTER TABLE {} ADD secret text DEFAULT 'x'",
}


@pytest.mark.parametrize("what", TAMPERED)
def test_rows_that_are_not_those_that_were_made_are_never_published(one_day, database, monkeypatch, what, tmp_path):
    """As a database could change them: what is verified is what it holds."""
    append = Session.append

    def tampered(session, table, rows):
        append(session, table, rows)
        for statement in TAMPERED[what].format(f'"{table[0]}"."{table[1]}"').split("; "):
            session.execute(statement)

    monkeypatch.setattr(Session, "append", tampered)
    with pytest.raises(NotVerified, match="nothing was published"):
        shoal.publish(one_day, database.table("march"), shoal.Shoal(k=2), audit=tmp_path / "audit.parquet")
    assert database.tables() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", [*TAMPERED, "comment", "no comment"])
def test_a_table_that_was_changed_later_does_not_verify(one_day, released, what):
    database, _ = released
    more = {
        "comment": """COMMENT ON TABLE {} IS '{{"shoal": {{"format": 1}}, "files": {{"rows": "x"}} }}'""",
        "no comment": "COMMENT ON TABLE {} IS NULL",
    }
    database.sql("DROP TABLE IF EXISTS changed")
    with database.server.connect(database.name) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE changed (LIKE march INCLUDING ALL)")
        cursor.execute(
            "INSERT INTO changed (uid, t_start, t_end, x_min, y_min, x_max, y_max, datetime, lat, lng, geom)"
            "SELECT uid, t_start, t_end, x_min, y_min, x_max, y_max, datetime, lat, lng, geom FROM march "
            "ORDER BY ctid"
        )
        cursor.execute("SELECT obj_description('march'::regclass)")
        ((comment,),) = cursor.fetchall()
        cursor.execute("COMMENT ON TABLE changed IS '" + comment.replace("'", "''") + "'")
    assert shoal.verify(one_day, database.table("changed")).ok
    for statement in (more | TAMPERED)[what].format("changed").split("; "):
        database.sql(statement)
    if "comment" in what:
        with pytest.raises(CannotCheck, match="does not say on which grid"):
            shoal.verify(one_day, database.table("changed"))
        with pytest.raises(UnreadableFile, match="manifest"):
            shoal.read_release(database.table("changed"))
        return
    verdict = shoal.verify(one_day, database.table("changed"))
    assert "integrity" in verdict.failures
    with pytest.raises(UnreadableFile):
        shoal.read_release(database.table("changed"))


def test_a_renamed_or_copied_release_still_verifies(one_day, released):
    database, audit = released
    database.sql("ALTER TABLE march RENAME TO april")
    try:
        assert shoal.verify(one_day, database.table("april"), audit=audit).ok
    finally:
        database.sql("ALTER TABLE april RENAME TO march")


def test_another_tools_table_is_checked_like_its_file(one_day, released):
    database, _ = released
    database.sql(
        "CREATE TABLE IF NOT EXISTS other AS SELECT uid, t_start, t_end, x_min, y_min, x_max, y_max FROM march "
        "ORDER BY uid, t_start"
    )
    crs = shoal.read_release(database.table("march")).frame.crs
    how = {"crs": crs, "cell": "100m", "slot": "60s"}
    verdict = shoal.verify(one_day, database.table("other"), claim=shoal.Claim("k-anonymity", k=2), **how)
    assert verdict.ok, verdict.problems


@pytest.mark.parametrize(
    ("target", "error", "said"),
    [
        ("table=march", AlreadyExists, "is there already"),
        ("table=nowhere.march", OutputError, "no such schema"),
        ("table=pg_catalog.march", OutputError, "may do that|may not create|can't be carried out|ask for the right"),
        ("query=SELECT 1", SettingsError, "a release is a table"),
        ("", SettingsError, "names a table or a query"),
    ],
)
def test_where_nothing_can_be_written(one_day, released, target, error, said):
    """It is said before any work."""
    database, _ = released
    with pytest.raises(error, match=said):
        shoal.publish(one_day, database.address(target), shoal.Shoal(k=2))


@pytest.mark.parametrize("made", ["TABLE kept AS SELECT 1 AS uid", "VIEW kept AS SELECT 1 AS uid"])
def test_only_releases_are_replaced(one_day, database, made):
    database.sql(f"CREATE {made}")
    with pytest.raises(OutputError, match="replaces releases only"):
        shoal.publish(one_day, database.table("kept"), shoal.Shoal(k=2), overwrite=True)
    with pytest.raises(OutputError, match="is an input"):
        shoal.publish(database.table("kept"), database.table("kept"), shoal.Shoal(k=2), overwrite=True)
    assert database.sql("SELECT * FROM kept") == [(1,)]


def test_rights_are_looked_at_first(one_day, database):
    if not database.sql("SELECT 1 FROM pg_roles WHERE rolname = 'reader'"):
        database.sql("CREATE ROLE reader LOGIN")
    with pytest.raises(OutputError, match="may not create tables"):
        shoal.publish(one_day, database.table("march", user="reader"), shoal.Shoal(k=2))


def test_a_name_that_was_taken_meanwhile(one_day, database, monkeypatch, tmp_path):
    seen_meanwhile(monkeypatch, lambda: database.sql("CREATE TABLE march AS SELECT 1 AS uid"))
    for overwrite, error in ((False, AlreadyExists), (True, OutputError)):
        database.sql("DROP TABLE IF EXISTS march")
        with pytest.raises(error):
            shoal.publish(
                one_day,
                database.table("march"),
                shoal.Shoal(k=2),
                audit=tmp_path / "audit.parquet",
                overwrite=overwrite,
            )
        assert database.sql("SELECT * FROM march") == [(1,)]
        assert list(tmp_path.iterdir()) == []


def test_a_session_that_holds_the_old_release(one_day, database, monkeypatch):
    """It is waited for, but not for ever."""
    shoal.publish(one_day, database.table("march"), shoal.Shoal(k=2))
    monkeypatch.setattr(postgres, "_LOCK_WAIT", "100ms")
    with database.server.connect(database.name) as holding, holding.cursor() as cursor:
        holding.adbc_connection.set_autocommit(False)
        cursor.execute("SELECT count(*) FROM march")
        cursor.fetchall()
        with pytest.raises(OutputError, match="another session uses the table"):
            shoal.publish(one_day, database.table("march"), shoal.Shoal(k=3), overwrite=True)
        holding.rollback()
    assert shoal.read_release(database.table("march")).claim.k == 2


def test_the_manifest_is_the_comment(released):
    database, _ = released
    ((comment,),) = database.sql("SELECT obj_description('march'::regclass)")
    manifest = json.loads(comment)
    assert set(manifest) == {"shoal", "counts", "seeded", "files"}
    assert list(manifest["files"]) == ["rows"]
    assert not {database.name, "march", "canary"} & {*comment.split('"')}


def test_the_hash_of_rows_depends_on_nothing_but_rows():
    table = pa.table({"a": [1, None, 3], "b": [b"x", b"", None], "c": [0.5, -0.0, None], "d": ["x", None, "yz"]})
    whole = row_hash([table])
    assert row_hash([table[:1], table[1:1], table[1:]]) == whole
    assert row_hash([table.combine_chunks().slice(0, 2), table.slice(2)]) == whole
    for name, other in {"a": [1, 2, 3], "b": [b"", b"x", None], "c": [0.5, 0.0, None], "d": ["xy", None, "z"]}.items():
        position = table.column_names.index(name)
        assert row_hash([table.set_column(position, name, pa.array(other))]) != whole, name
    assert row_hash([table.rename_columns(["b", "a", "c", "d"])]) != whole
    assert RowHash().hexdigest() == row_hash([table[:0]]) != row_hash([table[:1]])


@pytest.mark.parametrize("named", [True, False])
def test_reading_options_come_from_the_run_record(one_day, database, tmp_path, named):
    """It is found beside the audit file, and is that of this table by the hash of its rows."""
    audit, record = tmp_path / "audit.parquet", tmp_path / "march.parquet.run.json"
    shoal.publish(one_day, database.table("march"), shoal.Shoal(k=2), audit=audit, min_samples=20)
    assert (
        json.loads(record.read_text())["files"]
        == json.loads(database.sql("SELECT obj_description('march'::regclass)")[0][0])["files"]
    )
    how = {"run_record": record} if named else {"audit": audit}
    verdict = shoal.verify(one_day, database.table("march"), **how)
    assert verdict.ok, verdict.problems
    assert any("min-samples" in message or "min_samples" in message for message in verdict.messages)
    shoal.publish(one_day, database.table("march"), shoal.Shoal(k=2), overwrite=True)
    with pytest.raises(CannotCheck, match="another release"):
        shoal.verify(one_day, database.table("march"), run_record=record)
