"""Events from PostgreSQL: tables and queries, their types, and what goes wrong, without a word of the server."""

import signal
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import ColumnsNotFound, InputError, SettingsError, UnreadableFile
from shoal.reading.forms.postgres import bring_table
from shoal.stores.postgres import connected

EVENTS = """
    SELECT * FROM (VALUES
        ({who}, timestamptz '2026-03-01 08:00:00+00', 39.9, 116.4),
        ({who}, timestamptz '2026-03-01 09:30:00.25+00', 39.95, 116.45)
    ) AS v (uid, datetime, lat, lng)
"""


def people_of(people):
    return people.labels.to_pylist(), people.offsets.tolist(), people.t.tolist(), people.x.tolist(), people.y.tolist()


def bring(address, folder):
    ((path, _),) = bring_table(address, folder, lambda _: None)
    return pq.read_table(path)


def test_a_table_reads_like_a_file(events, database):
    database.load("events", pq.read_table(events))
    whole = people_of(shoal.read(events))
    assert people_of(shoal.read(database.table("events"))) == whole
    assert people_of(shoal.read(database.table('public."events"'))) == whole
    assert people_of(shoal.read(database.query("SELECT * FROM events  -- all of them"))) == whole
    half = database.query("SELECT * FROM events WHERE uid % 2 = {}")
    assert people_of(shoal.read([half.format(0), half.format(1)])) == whole
    traces = shoal.read_traces(database.table("events"))
    assert traces.ms.tolist() == shoal.read_traces(events).ms.tolist()


@pytest.mark.parametrize("who", ["7", "7::bigint", "'ann'", "7::numeric(20)", "gen_random_uuid()", "'ann'::varchar(9)"])
def test_users_of_any_type(shared_database, who):
    people = shoal.read(shared_database.query(EVENTS.format(who=f"(SELECT {who})")))
    assert len(people.t) == 2


def test_types_arrive_as_what_they_are(database, tmp_path):
    columns = {
        "a": ("1::smallint", pa.int16(), 1),
        "b": ("true", pa.bool_(), True),
        "c": ("12345678901234567890.5::numeric", pa.string(), "12345678901234567890.5"),
        "d": ("'NaN'::float8", pa.float64(), None),
        "e": ("'6f0c0b5e-6b1c-4bb2-8a0e-000000000001'::uuid", pa.string(), "6f0c0b5e-6b1c-4bb2-8a0e-000000000001"),
        "f": (
            "tstzrange('2026-03-01 08:00+01', NULL)",
            pa.string(),
            '["2026-03-01 07:00:00+00",)',
        ),
        "g": ("'{}'::jsonb", pa.string(), "{}"),
        "h": ("interval '1 hour'", pa.string(), "01:00:00"),
        "i": ("'infinity'::timestamptz", pa.timestamp("us", "UTC"), None),
        "j": ("'x'::char(3)", pa.string(), "x"),
        "k": ("NULL::inet", pa.string(), None),
        "with \"quotes\" and 'more'": ("'x'::text", pa.string(), "x"),
    }
    quoted = ", ".join(f'{sql} AS "{name.replace(chr(34), chr(34) * 2)}"' for name, (sql, _, _) in columns.items())
    table = bring(database.query(f"SELECT {quoted}"), tmp_path)
    for name, (_, kind, value) in columns.items():
        assert table[name].type == kind, name
        if name == "d":
            assert np.isnan(table[name][0].as_py())
        else:
            assert table[name][0].as_py() == value, name


@pytest.mark.parametrize(
    "place",
    [
        "ST_SetSRID(ST_MakePoint(lng, lat), 4326)",
        "ST_SetSRID(ST_MakePoint(lng, lat), 4326)::geography",
        "ST_Transform(ST_SetSRID(ST_MakePoint(lng, lat), 4326), 3857)",
        "ST_SetSRID(ST_MakePoint(lng, lat, 12), 4326)",
    ],
)
def test_points_of_postgis_become_degrees(shared_database, place):
    database = shared_database
    query = f"SELECT uid, datetime, {place} AS where_ FROM ({EVENTS.format(who=1)}) AS e"
    expected = people_of(shoal.read(database.query(EVENTS.format(who=1))))
    assert people_of(shoal.read(database.query(query))) == expected


def test_empty_and_missing_points_are_dropped_and_counted(database):
    points = "UNION ALL ".join(
        f"SELECT 1 AS uid, now() AS datetime, {point} AS geom "
        for point in ("ST_SetSRID(ST_MakePoint(1, 2), 4326)", "NULL", "'SRID=4326;POINT EMPTY'::geometry")
    )
    people = shoal.read(database.query(points))
    assert (people.account.rows_read, people.account.kept_rows) == (3, 1)


def test_columns_lat_and_lng_come_before_a_geometry(database):
    query = f"SELECT *, 'LINESTRING(0 0, 1 1)'::geometry AS geom FROM ({EVENTS.format(who=1)}) AS e"
    assert len(shoal.read(database.query(query)).t) == 2


@pytest.mark.parametrize(
    ("what", "error", "said"),
    [
        ("table=canary_nothing", UnreadableFile, "there is no such table"),
        ("table=nowhere.events", UnreadableFile, "there is no such table"),
        ("query=SELEC 'canary'", UnreadableFile, "mistake in its form"),
        ("query=SELECT canary FROM pg_class", UnreadableFile, "column that is not there"),
        ("query=SELECT 1 AS uid, 2 AS uid", UnreadableFile, "same name"),
        ("query=SELECT 'canary'::int AS uid", UnreadableFile, "a value that it can't use"),
        ("query=SELECT 1 / (n - n) AS uid FROM generate_series(1, 2) AS n", UnreadableFile, "an error in the query"),
        ("query=SELECT pg_sleep(1), pg_terminate_backend(pg_backend_pid())", UnreadableFile, "shutting down|stopped"),
        ("query=SELECT nextval('canary_sequence') AS uid", UnreadableFile, "an error in the query"),
        ("query=DELETE FROM pg_class", UnreadableFile, "mistake in its form"),
        ("query=SELECT 1) AS a; SELECT (1", UnreadableFile, "can't be carried out|mistake in its form"),
        ("query=SELECT 1 AS who", ColumnsNotFound, "can't find"),
        ("query=", SettingsError, "names a table or a query"),
        ("", SettingsError, "names a table or a query"),
        ("table=a&query=SELECT 1", SettingsError, "names a table or a query"),
        ("table=a&table=b", SettingsError, "one table"),
        ("table=a.b.c", SettingsError, "takes a table or schema.table"),
        ("table=a-b", SettingsError, "takes a table or schema.table"),
        ("canary=1&table=a", UnreadableFile, "libpq does not know"),
        (
            "query=SELECT 1 AS uid, now() AS t, ST_MakePoint(1, 2) AS geom",
            UnreadableFile,
            "no SRID",
        ),
        ("query=SELECT 1 AS uid, now() AS t, 'LINESTRING(0 0, 1 1)'::geometry AS g", UnreadableFile, "not a point"),
        ("query=SELECT 'POINT(0 0)'::geometry AS a, 'POINT(0 0)'::geometry AS b", UnreadableFile, "2 columns"),
    ],
)
def test_what_goes_wrong_is_said_in_our_words(shared_database, what, error, said):
    database = shared_database
    with pytest.raises(error, match=said) as raised:
        shoal.read(database.address(what))
    assert "canary" not in str(raised.value).replace("table=canary_nothing", "")
    assert database.name not in str(raised.value)
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("postgresql://canary:canary@127.0.0.1:1/canary?table=t", "no server answers"),
        ("postgresql://canary:canary@canary.invalid/canary?table=t", "no server answers"),
        ("postgresql:///canary?host=/tmp/canary&table=t", "no server answers"),
        ("postgresql://canary:p%zz@127.0.0.1:1/canary?table=t", "no server answers"),
    ],
)
def test_servers_that_are_not_there(address, said):
    with pytest.raises(UnreadableFile, match=said) as raised:
        shoal.read(address)
    assert "canary" not in str(raised.value)


def test_who_may_not_come_in(database):
    database.sql(
        "CREATE ROLE canary_user LOGIN PASSWORD 'canary_secret'"
        if not database.sql("SELECT 1 FROM pg_roles WHERE rolname = 'canary_user'")
        else "SELECT 1"
    )
    database.sql("CREATE TABLE events AS " + EVENTS.format(who=1))
    for password in (None, "canary_wrong"):
        with pytest.raises(UnreadableFile, match="refused the user or the password"):
            shoal.read(database.table("events", user="canary_user", password=password))
    with pytest.raises(UnreadableFile, match="ask for the right"):
        shoal.read(database.table("events", user="canary_user", password="canary_secret"))
    database.sql("GRANT SELECT ON events TO canary_user")
    assert len(shoal.read(database.table("events", user="canary_user", password="canary_secret")).t) == 2


def test_a_password_from_the_environment(database, monkeypatch):
    test_who_may_not_come_in(database)
    monkeypatch.setenv("PGPASSWORD", "canary_secret")
    assert len(shoal.read(database.table("events", user="canary_user")).t) == 2


def test_rows_come_in_batches(database, tmp_path):
    """Memory is bounded: a large result is never held as a whole."""
    seen = []
    query = "SELECT n AS uid, repeat('x', 100) AS more FROM generate_series(1, 400000) AS n"
    bring_table(database.query(query), tmp_path, seen.append)
    assert sum(seen) == 400_000
    assert max(seen) < 250_000


def test_a_query_is_one_snapshot(database, tmp_path):
    """What is written meanwhile is not read: types are looked at first, then rows are fetched."""
    database.sql("CREATE TABLE events AS " + EVENTS.format(who=1))
    with connected(database.table("events")) as session:
        session.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        session.types("SELECT * FROM events")
        database.sql("DELETE FROM events")
        assert sum(len(batch) for batch in session.batches("SELECT uid FROM events")) == 2


def test_a_signal_cancels_the_query_on_the_server(database, tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is born deaf to it
    busy = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%pg_sleep(600)%' "
    busy += "AND state = 'active' AND pid <> pg_backend_pid()"

    def interrupt():
        while not database.sql(busy)[0][0]:
            time.sleep(0.05)
        signal.raise_signal(signal.SIGINT)

    helper = threading.Thread(target=interrupt)
    helper.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            bring_table(database.query("SELECT 1 AS uid, pg_sleep(600) AS s"), tmp_path, lambda _: None)
        helper.join()
    finally:
        signal.signal(signal.SIGINT, before)
    for _ in range(600):
        if not database.sql(busy)[0][0]:
            return
        time.sleep(0.05)
    pytest.fail("the query is still running")


def test_a_missing_driver_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "adbc_driver_postgresql", None)
    with pytest.raises(InputError, match=r"shoal-privacy\[postgres\]"):
        shoal.read("postgresql:///x?table=t")
