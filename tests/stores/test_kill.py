"""A run that is killed at any moment leaves a database, and the private files, with nothing or with a whole release."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import pyarrow.parquet as pq
import pytest

import shoal
from shoal.errors import OutputError
from shoal.stores.postgres import Session
from shoal.switch import Undecided, mend, switch
from tests.forked import forked
from tests.publishing import dead_folder

# A command that kills itself before or after the n-th thing that it does to the database or to files in their place.
STEP = """
import os, sys
from shoal import switch
from shoal.cli import main
from shoal.stores.postgres import Session
left = int(sys.argv[1])
def step():
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), 9)
def counted(function):
    def call(*arguments, **how):
        step()
        result = function(*arguments, **how)
        step()
        return result
    return call
for kind, names in ((Session, ("execute", "table", "append", "commit")), (switch._Move, ("do",))):
    for name in names:
        setattr(kind, name, counted(getattr(kind, name)))
sys.argv[1:] = sys.argv[2:]
try:
    main()
finally:
    print("steps left:", left)
"""
LAST = 79  # one more than there are: the run ends by itself


def settled(database):
    """Wait until the server has noticed that the run is gone."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    for _ in range(600):
        if database.sql(others) == [(0,)]:
            return
        time.sleep(0.05)
    pytest.fail("a session of a killed run is still there")


def copied(path):
    """An audit under a name with an ending that is known."""
    return shutil.copy(path, path.with_name("copy.parquet"))


def names(folder):
    """The files in a folder, besides run records, which go with audit files."""
    return {path.name for path in folder.iterdir() if ".run.json" not in path.name}


def steps(few):
    return [pytest.param(n, marks=[pytest.mark.slow] * (n not in few)) for n in range(1, LAST + 1)]


@pytest.mark.parametrize("step", steps({44, 58, 60, 62, 76, 77, 78, 79}))
def test_killed_at_any_step(one_day, database, tmp_path, step):
    """With an old release: afterwards there is that one or the new one, with an audit that belongs to it."""
    table, audit = database.table("march"), tmp_path / "audit.parquet"
    shoal.publish(one_day, table, shoal.Shoal(k=2), audit=audit)
    again = ["anonymize", str(one_day), table, "--k", "3", "--audit", str(audit), "--overwrite"]
    code, out, said = forked(STEP, step, *again)
    settled(database)
    assert database.tables() == ["march"]
    new = shoal.read_release(table).claim.k == 3
    assert (code == 0) == (step == LAST), out + said
    if code == 0:
        assert new
    else:
        assert code == -signal.SIGKILL, said
    mend(tmp_path)
    found = sorted(path for path in tmp_path.iterdir() if path.name.startswith("audit"))
    before = [path for path in found if path != audit]
    assert shoal.verify(one_day, table, audit=audit if new or not before else copied(before[0])).ok
    assert code or not before
    shoal.publish(one_day, table, shoal.Shoal(k=2), audit=audit, overwrite=True)
    assert shoal.verify(one_day, table, audit=audit).ok
    assert names(tmp_path) <= {"audit.parquet", "audit.parquet.before", "copy.parquet"}


@pytest.fixture
def hearing():
    """A job in the background is born deaf to Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hearing")
def test_a_signal_while_the_release_is_verified(one_day, database, tmp_path, run, monkeypatch):
    """Ctrl-C leaves nothing behind, on the server and on disk."""
    from shoal import pipeline

    monkeypatch.setattr(pipeline, "verify", lambda *_, **__: signal.raise_signal(signal.SIGINT))
    done = run("anonymize", one_day, database.table("march"), "--k", 2, "--audit", "audit.parquet", check=130)
    assert "nothing was published" in done.stderr
    assert database.tables() == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("happened", [True, False])
def test_an_answer_to_the_commit_that_is_lost(one_day, database, tmp_path, monkeypatch, happened):
    """What the database says afterwards counts."""
    commit = Session.commit

    def lost(session):
        if happened:
            commit(session)
        session._fail("57P01")

    monkeypatch.setattr(Session, "commit", lost)
    how = {"audit": tmp_path / "audit.parquet"}
    if happened:
        shoal.publish(one_day, database.table("march"), shoal.Shoal(k=2), **how)
        assert shoal.verify(one_day, database.table("march"), **how).ok
    else:
        with pytest.raises(OutputError, match="refused the commit; nothing was published"):
            shoal.publish(one_day, database.table("march"), shoal.Shoal(k=2), **how)
        assert (database.tables(), list(tmp_path.iterdir())) == ([], [])


def test_nobody_can_say_whether_the_commit_happened(one_day, database, tmp_path, monkeypatch):
    """Both audits stay, and the ledger counts the release."""
    from shoal.publishing.targets import postgres

    table, audit = database.table("march"), tmp_path / "audit.parquet"
    shoal.publish(one_day, table, shoal.Shoal(k=2), audit=audit)

    def lost(session):
        def gone(*_, **__):
            raise OutputError("no server")

        monkeypatch.setattr(postgres, "connected", gone)
        session._fail("57P01")

    monkeypatch.setattr(Session, "commit", lost)
    how = {"audit": audit, "overwrite": True, "ledger": tmp_path / "ledger.shoal"}
    with pytest.raises(Undecided, match="may be published or not"):
        shoal.publish(one_day, table, shoal.Shoal(k=3), **how)
    assert names(tmp_path) == {"audit.parquet", "audit.parquet.before", "ledger.shoal"}
    assert shoal.verify(one_day, table, audit=tmp_path / "audit.parquet.before").ok
    monkeypatch.undo()
    with pytest.raises(shoal.ShoalError, match="begun and never confirmed"):
        shoal.publish(one_day, table, shoal.Shoal(k=3), **how)


def switched(tmp_path, commit, before):
    """Switch one file, together with a commit elsewhere."""
    home = dead_folder(tmp_path)
    (home / "audit").write_text("new")
    if before:
        (tmp_path / "audit").write_text("old one")
    switch([(home / "audit", tmp_path / "audit")], overwrite=before, commit=commit)


@pytest.mark.parametrize("before", [False, True])
def test_a_commit_that_fails_takes_the_files_back(tmp_path, before):
    def refused():
        assert (tmp_path / "audit").read_text() == "new"
        raise OutputError("refused")

    with pytest.raises(OutputError, match="refused"):
        switched(tmp_path, refused, before)
    assert (tmp_path / "audit").exists() == before
    assert not before or (tmp_path / "audit").read_text() == "old one"


@pytest.mark.parametrize("before", [False, True])
def test_a_run_that_is_killed_during_the_commit_keeps_both_files(tmp_path, before, caplog):
    child = os.fork()
    if not child:
        switched(tmp_path, lambda: os.kill(os.getpid(), signal.SIGKILL), before)
    os.waitpid(child, 0)
    mend(tmp_path)
    assert (tmp_path / "audit").read_text() == "new"
    assert (tmp_path / "audit.before").exists() == before
    assert not before or (tmp_path / "audit.before").read_text() == "old one"
    assert "may have happened or not" in caplog.text
    caplog.clear()
    mend(tmp_path)
    assert not caplog.text


@pytest.mark.slow
def test_a_million_events_killed_at_random_moments(database, tmp_path):
    """20 times; a session that looks all the time never sees a table that is not a whole, verified release."""
    events = int(os.environ.get("SHOAL_KILL_EVENTS", "1000000"))
    path = tmp_path / "events.parquet"
    shoal.synthesize(path, users=events // 150, days=14, seed=1)
    database.load("events", pq.read_table(path).slice(0, events))
    path.unlink()
    seen, over = [], threading.Event()

    def watch():
        with database.server.connect(database.name) as connection, connection.cursor() as cursor:
            while not over.is_set():
                cursor.execute(
                    "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname NOT LIKE 'spatial%' "
                    "AND oid > 16384 AND relnamespace = 'public'::regnamespace ORDER BY 1"
                )
                seen.append(tuple(name for (name,) in cursor.fetchall()))

    arguments = [database.table("events"), database.table("march"), "--k", "2", "--audit", tmp_path / "audit.parquet"]
    command = [sys.executable, "-m", "shoal.cli", "anonymize", *map(str, arguments), "--min-samples", "2"]
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        begun = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        whole = time.monotonic() - begun
        assert shoal.verify(
            database.table("events"), database.table("march"), min_samples=2, audit=tmp_path / "audit.parquet"
        ).ok
        chance, killed = random.Random(5), 0
        for _ in range(20):
            for private in ("audit.parquet", "march.parquet.run.json"):
                (tmp_path / private).unlink(missing_ok=True)
            database.sql("DROP TABLE IF EXISTS march")
            start = len(seen)
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            try:
                assert process.wait(chance.uniform(0.05, 1.05) * whole) == 0
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                killed += 1
            settled_with_watcher(database)
            if ("events", "march") in seen[start:]:
                assert shoal.read_release(database.table("march")).claim.k == 2
                assert (tmp_path / "audit.parquet").exists()
                assert shoal.verify(
                    database.table("events"), database.table("march"), min_samples=2, audit=tmp_path / "audit.parquet"
                ).ok
        assert killed >= 10
        print(f"{events:,} events, {whole:.0f} s a run, {killed} killed, {len(seen):,} looks")
    finally:
        over.set()
        watcher.join()
    assert set(seen) <= {("events",), ("events", "march")}


def settled_with_watcher(database):
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'shoal'"
    for _ in range(600):
        if database.sql(others) == [(0,)]:
            return
        time.sleep(0.05)
    pytest.fail("a session of a killed run is still there")
