"""A PostgreSQL server with PostGIS and a double of S3, each started once in a process and stopped with it."""

import os
import secrets
from contextlib import contextmanager

import pytest

from tests.postgres import Database, Missing, started


@pytest.fixture(scope="session")
def server():
    """A server; without one tests are skipped, or fail where servers are required."""
    try:
        with started() as one:
            yield one
    except Missing as error:
        if os.environ.get("SHOAL_SERVERS") == "required":
            pytest.fail(str(error))
        pytest.skip(str(error))


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
