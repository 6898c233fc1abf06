"""A private PostgreSQL server with PostGIS, for tests and benchmarks: in a folder of its own, gone at the end."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

# Stops the server and removes its folder when this process ends, however it ends: then the pipe is closed.
WATCH = '"$0" "$@" & read -r _; kill -INT $!; wait; rm -rf "${SHOAL_SERVER_FOLDER:?}"'


class Missing(Exception):
    """There is no server to start."""


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
    raise Missing("there is no user to run PostgreSQL as")


@contextmanager
def started():
    """Start a server; its database `geo` has PostGIS, and is a template for others. Raises Missing."""
    folders = sorted(map(str, Path("/usr/lib/postgresql").glob("*/bin/initdb"))) or [shutil.which("initdb") or ""]
    if not folders[-1]:
        raise Missing("PostgreSQL is not installed; see tests/setup/postgres.sh")
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
                env={**os.environ, "SHOAL_SERVER_FOLDER": str(folder)},
                **quiet,
            )
        _wait_for(folder / ".s.PGSQL.5432", running, folder / "log")
        started = Server(folder)
        started.sql("CREATE DATABASE geo")
        try:
            started.sql("CREATE EXTENSION postgis", "geo")
        except Exception as error:
            raise Missing("PostGIS is not installed; see tests/setup/postgres.sh") from error
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
