"""Canary run (also of failing commands): what is planted in the input shows up nowhere but in private files."""

import json
import os
import struct
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.jit import kernels_folder

USER, COLUMN, FOLDER = "CanaryPerson", "canary_column", "canary_folder"
LAT, LNG = 14.716677123456, -17.467686987654
TIME_MS = 1_767_614_461_234  # 2026-01-05 12:01:01.234
TEXTS = [USER, str(LAT), str(LNG), str(LAT)[:9], str(LNG)[:9], str(TIME_MS), "12:01:01", "01.234"]
BYTES = [
    *(text.encode() for text in TEXTS),
    *(struct.pack("<d", value) for value in (LAT, LNG)),
    *(struct.pack("<q", TIME_MS * scale) for scale in (1, 1000)),
]
STRICTER = [COLUMN.encode(), FOLDER.encode()]


def with_canaries(labels, users):
    """Generated people, and two whose labels, place and times are canaries."""
    table = shoal.synthesize(users=users, scene="town", days=3, seed=1)
    others = table.set_column(0, "uid", table["uid"].cast(pa.array(labels).type))
    canary = {
        "uid": [labels[n % 2] for n in range(40)],
        "datetime": pa.array([TIME_MS + 3_600_000 * (n // 2) for n in range(40)], pa.timestamp("ms", tz="UTC")),
        "lat": np.full(40, LAT),
        "lng": np.full(40, LNG),
    }
    return pa.concat_tables([others, pa.table(canary).cast(others.schema)])


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """People with canaries among them, in a folder and with a column that carry canaries too."""
    folder = tmp_path_factory.mktemp(FOLDER)
    both = with_canaries([f"{USER}0", f"{USER}1"], users=60)
    both = both.append_column(COLUMN, pa.array(np.arange(both.num_rows)))
    pq.write_table(both, folder / "events.parquet")
    broken = (folder / "events.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(broken[: len(broken) // 2])
    both = both.set_column(2, "lat", pa.array([99.0, *both["lat"].to_pylist()[1:]]))
    pq.write_table(both, folder / "bad-row.parquet")
    return folder


# What is run, and its exit code.
COMMANDS = {
    "inspect": (0, "inspect {events}"),
    "inspect-json": (0, "inspect {events} --json"),
    "anonymize": (0, "anonymize {events} {out}/r.parquet --k 3"),
    "csv": (0, "anonymize {events} {out}/r.csv --k 2 --seed 1 --json"),
    "full": (0, "anonymize {events} {out}/r.parquet --k 2 --geo --compact"),
    "private": (
        0,
        "anonymize {events} {out}/r.parquet --k 2 --audit {out}/private.parquet --run-record {out}/private.json",
    ),
    "measure": (0, "measure {events} --k 2,5 --unicity --sample 30 --plots {out}/figures --json"),
    "measure-table": (0, "measure {events} --k 2 --output {out}/private.parquet"),
    "measure-too-large-k": (2, "measure {events} --k 900"),
    "dry-run": (0, "anonymize {events} {out}/r.parquet --k 2 --dry-run"),
    "too-large-k": (2, "anonymize {events} {out}/r.parquet --k 900"),
    "cut": (2, "anonymize {in}/cut.parquet {out}/r.parquet --k 2"),
    "strict": (2, "anonymize {in}/bad-row.parquet {out}/r.parquet --k 2 --strict"),
    "wrong-columns": (2, "anonymize {events} {out}/r.parquet --k 2 --columns user=nobody"),
    "verify": (0, "verify {events} {release} --json"),
    "verify-fails": (1, "verify {events} {release} --k 50"),
    "attack": (0, "attack {events} {release} --attack all --victims 50"),
    "attack-table": (
        0,
        "attack {events} {release} --attack all --audit {audit} --other {release} --output {out}/table.csv --json",
    ),
    "attack-fails": (1, "attack {events} {release} --k 50"),
    "attack-wrong": (2, "attack {events} {release} --attack owner --audit {release}"),
    "promesse": (0, "anonymize {events} {out}/r.parquet --method promesse --split-gap 4h"),
    "promesse-too-long": (2, "anonymize {events} {out}/r.csv --method promesse --step 90km"),
    "noise-wrong": (2, "anonymize {events} {out}/r.csv --method geo-indistinguishability --epsilon -1"),
    "evaluate": (0, "evaluate {events} {release} --audit {audit} --output {out}/table.csv"),
    "evaluate-fails": (2, "evaluate {events} {release} --audit {release}"),
    "compare-points": (0, "compare {events} --methods raw,promesse --output {out}/table.json"),
    "synth": (0, "synth {out}/s.parquet --users 5 --days 1"),
    "demo": (0, "demo --users 40 --folder {out}/demo"),
}


@pytest.fixture(scope="module")
def release(planted, tmp_path_factory):
    path = tmp_path_factory.mktemp("released") / "r.parquet"
    shoal.KScale(k=2).anonymize(shoal.read(planted / "events.parquet")).write(
        path, audit=path.with_name("private.parquet")
    )
    return path


# Runs commands as they come, one a line, with what they say in files; the last file descriptor is for the exit codes.
SERVE = """
import json, os, sys
from shoal.cli import main
codes = os.fdopen(os.dup(1), "w")
for line in sys.stdin:
    arguments, out, err = json.loads(line)
    for number, path in ((1, out), (2, err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
    try:
        main(arguments)
    except SystemExit as end:
        sys.stdout.flush()
        print(end.code, file=codes, flush=True)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("home")
    (home / "tmp").mkdir()
    return home


@pytest.fixture(scope="module")
def serve(home, tmp_path_factory):
    """A process with a home of its own that all commands run in; gives the exit code and what was said."""
    places = {"HOME": home, "TMPDIR": home / "tmp", "XDG_CACHE_HOME": home, "NUMBA_CACHE_DIR": kernels_folder()}
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        cwd=home,
        env={**os.environ, **{name: str(place) for name, place in places.items()}},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def _serve(*arguments):
        said = [tmp_path_factory.mktemp("said") / name for name in ("out", "err")]
        print(json.dumps([arguments, *map(str, said)]), file=process.stdin, flush=True)
        code = process.stdout.readline().strip()
        return code, b"".join(path.read_bytes() for path in said)

    with process:
        yield _serve
        process.stdin.close()


@pytest.mark.parametrize("name", COMMANDS)
def test_canary(serve, home, planted, release, tmp_path, name):
    expected, command = COMMANDS[name]
    places = {"in": planted, "events": planted / "events.parquet", "out": tmp_path, "release": release}
    places["audit"] = release.with_name("private.parquet")
    code, said = serve(*[part.format(**places) for part in command.split()])
    assert code == str(expected), said
    assert b"Traceback" not in said
    assert not [canary for canary in [*BYTES, FOLDER.encode()] if canary in said]
    files = (path for folder in (tmp_path, home) for path in folder.rglob("*") if path.is_file())
    for path in (path for path in files if not path.name.startswith("private")):
        content = path.read_bytes() + decoded(path)
        assert not [canary for canary in BYTES + STRICTER if canary in content], path.name
    assert not list((home / "tmp").iterdir())


def decoded(path):
    """The content of a Parquet file without its compression."""
    if path.suffix != ".parquet":
        return b""
    table = pq.read_table(path)
    return raw(table) + table.to_pandas().to_csv().encode()


def raw(table):
    buffers = (buffer for column in table.columns for chunk in column.chunks for buffer in chunk.buffers() if buffer)
    return b"".join(buffer.to_pybytes() for buffer in buffers)


def test_the_canaries_would_be_found(planted):
    """The test can fail: the input itself, and an audit file, do hold canaries."""
    content = decoded(planted / "events.parquet")
    assert USER.encode() in content
    assert struct.pack("<d", LAT) in content
    assert COLUMN.encode() in content
