"""A PostgreSQL server with PostGIS and a double of S3, each started once in a process and stopped with it."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

# Stops the server when this process ends, however it ends: then the pipe is closed.
WATCH = '"$0" "$@" & read -r _; kill -INT $!; wait'


def missing(what):
    """Skip a test whose server is not there; where servers are required, fail."""
    if os.environ.get("SHOAL_SERVERS") == "required":
        pytest.fail(what)
    pytest.skip(what)


class Server:
    """A private server that listens on a socket in a folder."""

    user = "shoal"

    def __init__(self, folder):
        self.folder = folder

    def address(self, database, what="", user=None, password=None):
        who = f"{user or self.user}{f':{password}' if password else ''}"
        return f"postgresql://{who}@/{database}?host={self.folder}{f'&{what}' if what else ''}"

    def connect(self, database="postgres"):
        from adbc_driver_postgresql import dbapi

        return dbapi.connect(self.address(database), autocommit=True)

    def sql(self, statement, database="postgres"):
        """Carry out a statement; return its rows."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []


def _account():
    """The user that the server runs as: not root, which it refuses."""
    if os.getuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            account = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    return missing("there is no user to run PostgreSQL as")


@pytest.fixture(scope="session")
def server():
    """A server whose databases have PostGIS (the template `geo`)."""
    folders = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb"))) or [shutil.which("initdb") or ""]
    if not folders[-1]:
        missing("PostgreSQL is not installed; see tests/setup/postgres.sh")
    binaries = Path(folders[-1]).parent
    account = _account()
    folder = Path(tempfile.mkdtemp(prefix="shoal-canaryhost-", dir="/tmp"))  # a short path: sockets need one
    running = None
    try:
        if account:
            os.chown(folder, account["user"], account["group"])
        data = folder / "data"
        quiet = {"cwd": folder, "stdout": subprocess.DEVNULL, **account}
        made = [binaries / "initdb", "-D", data, "-U", Server.user, "--auth=trust", "--no-sync", "-E", "UTF8"]
        subprocess.run([*made, "--locale=C"], check=True, stderr=subprocess.PIPE, **quiet)
        with (data / "pg_hba.conf").open("w") as rules:
            rules.write("local all canary_user scram-sha-256\nlocal all all trust\n")
        options = {"listen_addresses": "", "fsync": "off", "unix_socket_directories": folder, "shared_buffers": "64MB"}
        command = [binaries / "postgres", "-D", data, *(f"--{name}={value}" for name, value in options.items())]
        with (folder / "log").open("wb") as log:
            running = subprocess.Popen(
                ["/bin/sh", "-c", WATCH, *map(str, command)],
                stdin=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
                **quiet,
            )
        _wait_for(folder / ".s.PGSQL.5432", running, folder / "log")
        started = Server(folder)
        started.sql("CREATE DATABASE geo")
        try:
            started.sql("CREATE EXTENSION postgis", "geo")
        except Exception:
            missing("PostGIS is not installed; see tests/setup/postgres.sh")
        yield started
    finally:
        if running is not None:
            running.stdin.close()
            running.wait(60)
        shutil.rmtree(folder, ignore_errors=True)


def _wait_for(socket, process, log):
    for _ in range(600):
        if socket.exists() and b"ready to accept" in log.read_bytes():
            return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise RuntimeError(log.read_text())


class Database:
    """A database of its own for one test."""

    def __init__(self, server, name):
        self.server, self.name = server, name

    def address(self, what="", **who):
        return self.server.address(self.name, what, **who)

    def table(self, name, **who):
        return self.address(f"table={name}", **who)

    def query(self, text, **who):
        return self.address(f"query={text}", **who)

    def sql(self, statement):
        return self.server.sql(statement, self.name)

    def tables(self):
        """What another session sees."""
        return [
            name
            for (name,) in self.sql(
                "SELECT relname FROM pg_class WHERE relkind = 'r' AND oid > 16384 "
                "AND relname NOT LIKE 'spatial%' ORDER BY 1"
            )
        ]

    def load(self, name, table):
        """Make a table of Arrow rows."""
        with self.server.connect(self.name) as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(name, table, mode="create")


@contextmanager
def made(server, template="geo"):
    name = f"canarydb_{secrets.token_hex(6)}"
    server.sql(f"CREATE DATABASE {name} TEMPLATE {template}")
    yield Database(server, name)
    server.sql(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def database(server):
    """A database with PostGIS for one test."""
    with made(server) as one:
        yield one


@pytest.fixture(scope="session")
def shared_database(server):
    """A database for tests that only read, with a sequence."""
    with made(server) as one:
        one.sql("CREATE SEQUENCE canary_sequence")
        yield one


@pytest.fixture
def plain_database(server):
    """A database without PostGIS."""
    with made(server, "template0") as one:
        yield one


class Bucket:
    """A bucket of the S3 double."""

    def __init__(self, files, name):
        self.files, self.name = files, name

    def address(self, key):
        return f"s3://{self.name}/{key}"

    def put(self, key, content):
        with self.files.open_output_stream(f"{self.name}/{key}") as stream:
            stream.write(content)

    def get(self, key):
        with self.files.open_input_stream(f"{self.name}/{key}") as stream:
            return stream.read()

    def keys(self):
        from pyarrow.fs import FileSelector, FileType

        found = self.files.get_file_info(FileSelector(self.name, recursive=True))
        return sorted(one.path.partition("/")[2] for one in found if one.type == FileType.File)


@pytest.fixture(scope="session")
def store():
    """The S3 double: its endpoint."""
    import logging

    server = pytest.importorskip("moto.server")
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    double = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    double.start()
    host, port = double.get_host_and_port()
    yield f"http://{host}:{port}"
    double.stop()


@pytest.fixture
def bucket(store, monkeypatch):
    from pyarrow.fs import S3FileSystem

    secret = {"AWS_ACCESS_KEY_ID": "CanaryKeyId", "AWS_SECRET_ACCESS_KEY": "CanarySecretKey", "AWS_REGION": "us-east-1"}
    for name, value in {**secret, "AWS_ENDPOINT_URL": store}.items():
        monkeypatch.setenv(name, value)
    files = S3FileSystem(region="us-east-1", endpoint_override=store, allow_bucket_creation=True)
    name = f"canary-bucket-{secrets.token_hex(4)}"
    files.create_dir(name)
    return Bucket(files, name)
