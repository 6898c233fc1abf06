"""What an address holds (user, password, host, database, bucket, SQL) shows up nowhere, whatever becomes of a run."""

import json
import os

import pyarrow.parquet as pq
import pytest

from shoal.cli.app import main

USER, SECRET = "canary_user", "canary_secret"
CANARIES = (USER, SECRET, "canaryhost", "canarydb", "canary-bucket", "CanaryKeyId", "CanarySecretKey", "canary_sql")
WRONG = f"postgresql://{USER}:{SECRET}@127.0.0.1:1/canarydb?table=events"
# The command, and its exit code.
COMMANDS = {
    "inspect": (0, ["inspect", "{table}"]),
    "inspect-json": (0, ["inspect", "{query}", "--json"]),
    "anonymize": (0, ["anonymize", "{query}", "{out}", "--k", "2", "--audit", "a.parquet", "--run-record", "r.json"]),
    "anonymize-json": (0, ["anonymize", "{table}", "r.parquet", "--k", "2", "--json", "--run-record", "r.json"]),
    "anonymize-csv": (0, ["anonymize", "{table}", "r.csv", "--k", "2", "--ledger", "ledger.shoal"]),
    "ledger": (0, ["anonymize", "{table}", "{out}", "--k", "2", "--ledger", "ledger.shoal", "--json"]),
    "to-bucket": (0, ["anonymize", "{table}", "{bucket}", "--k", "2", "--json"]),
    "dry-run": (0, ["anonymize", "{table}", "{out}", "--k", "2", "--dry-run"]),
    "verify": (0, ["verify", "{table}", "{released}"]),
    "verify-json": (0, ["verify", "{table}", "{released}", "--json"]),
    "verify-fails": (1, ["verify", "{table}", "{released}", "--k", "50"]),
    "verify-bucket": (2, ["verify", "{table}", "{bucket}-missing"]),
    "evaluate": (0, ["evaluate", "{table}", "{released}", "--output", "table.csv"]),
    "attack": (0, ["attack", "{table}", "{released}", "--victims", "10", "--output", "table.json"]),
    "exists": (2, ["anonymize", "{table}", "{released}", "--k", "2"]),
    "is-input": (2, ["anonymize", "{table}", "{table}", "--k", "2", "--overwrite"]),
    "too-large-k": (2, ["anonymize", "{table}", "{out}", "--k", "5000"]),
    "wrong-password": (2, ["inspect", "{refused}"]),
    "wrong-password-out": (2, ["anonymize", "{table}", "{refused}", "--k", "2"]),
    "wrong-host": (2, ["inspect", WRONG]),
    "wrong-host-out": (2, ["anonymize", "{table}", WRONG, "--k", "2", "--json"]),
    "wrong-host-verify": (2, ["verify", "{table}", WRONG, "--json"]),
    "wrong-sql": (2, ["inspect", "{table}&query=SELECT canary_sql"]),
    "wrong-table": (2, ["inspect", "{table}_not"]),
    "wrong-option": (2, ["inspect", "{table}&canary_sql=1"]),
    "no-table": (2, ["inspect", WRONG.partition("?")[0]]),
    "as-flag": (2, ["inspect", "{table}", "--threads", WRONG]),
    "as-number": (2, ["anonymize", "{table}", "x.parquet", "--k", "2", "--seed", WRONG]),
    "as-command": (2, [WRONG]),
    "as-unknown-flag": (2, ["inspect", f"--nothing={WRONG}"]),
    "as-other-scheme": (2, ["inspect", WRONG.replace("postgresql", "mysql")]),
    "as-release-file": (2, ["verify", "{table}", "a.parquet", "--audit", WRONG]),
    "bucket-missing": (2, ["inspect", "{bucket}"]),
    "bucket-keys": (2, ["inspect", "s3://CanaryKeyId:CanarySecretKey@canary-bucket/x.csv"]),
    "internal": (2, ["inspect", "{table}"]),
}


@pytest.fixture(scope="module")
def planted(server, one_day):
    """A database of a user with a password, with events and a release."""
    from tests.stores.conftest import made

    with made(server) as database:
        if not database.sql(f"SELECT 1 FROM pg_roles WHERE rolname = '{USER}'"):
            database.sql(f"CREATE ROLE {USER} LOGIN PASSWORD '{SECRET}'")
        database.load("events", pq.read_table(one_day))
        database.sql(f"GRANT SELECT ON events TO {USER}")
        database.sql(f"GRANT CREATE ON SCHEMA public TO {USER}")
        who = {"user": USER, "password": SECRET}
        with pytest.raises(SystemExit):
            main(["anonymize", str(one_day), database.table("released", **who), "--k", "2"])
        yield database


@pytest.mark.parametrize("name", COMMANDS)
def test_canary(planted, bucket, run, tmp_path, monkeypatch, name):
    code, command = COMMANDS[name]
    who = {"user": USER, "password": SECRET}
    planted.sql("DROP TABLE IF EXISTS out")
    if name == "internal":  # an error of ours that quotes the address

        def fails(address):
            raise ValueError(f"can't parse {address}")

        monkeypatch.setattr("shoal.reading.forms.postgres.database_of", fails)
    places = {
        "table": planted.table("events", **who),
        "query": planted.query("SELECT *, 1 AS canary_sql FROM events", **who).replace(", 1 AS canary_sql", ""),
        "out": planted.table("out", **who),
        "released": planted.table("released", **who),
        "refused": planted.table("events", user=USER, password=f"{SECRET}x"),
        "bucket": bucket.address("folder/r.parquet"),
    }
    done = run(*[part.format(**places) for part in command], check=code)
    assert not [canary for canary in CANARIES if canary in done.stdout + done.stderr], done
    if "--json" in command:
        json.loads(done.stdout)
    for path in tmp_path.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        content += pq.read_table(path).to_pandas().to_csv().encode() if path.suffix == ".parquet" else b""
        assert not [canary for canary in CANARIES if canary.encode() in content + os.fsencode(path.name)], path.name
    comments = planted.sql("SELECT obj_description(oid) FROM pg_class WHERE relname IN ('out', 'released')")
    assert not [canary for canary in CANARIES if canary in str(comments)]


def test_objects_with_an_address_do_not_print_it(planted):
    from shoal.publishing.stage import Outputs
    from shoal.stores.addresses import database_of

    address = planted.table("out", user=USER, password=SECRET)
    for thing in (Outputs.at(address), database_of(address)):
        assert not [canary for canary in CANARIES if canary in f"{thing!r} {thing}"]
