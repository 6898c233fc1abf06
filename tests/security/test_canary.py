"""Canary run (also of failing commands): what is planted in the input shows up nowhere but in private files."""

import os
import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal

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


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """Generated people with one canary among them, in a folder and with a column that carry canaries too."""
    folder = tmp_path_factory.mktemp(FOLDER)
    table = shoal.synthesize(users=60, scene="town", days=3, seed=1)
    canary = pa.table(
        {
            "uid": pa.array([f"{USER}{n % 2}" for n in range(40)]),
            "datetime": pa.array([TIME_MS + 3_600_000 * (n // 2) for n in range(40)]).cast(
                pa.timestamp("ms", tz="UTC")
            ),
            "lat": pa.array([LAT] * 40),
            "lng": pa.array([LNG] * 40),
        }
    )
    others = table.set_column(0, "uid", table["uid"].cast(pa.string()))
    both = pa.concat_tables([others, canary.cast(others.schema)])
    both = both.append_column(COLUMN, pa.array(np.arange(both.num_rows)))
    pq.write_table(both, folder / "events.parquet")
    broken = (folder / "events.parquet").read_bytes()
    (folder / "cut.parquet").write_bytes(broken[: len(broken) // 2])
    both = both.set_column(2, "lat", pa.array([99.0, *both["lat"].to_pylist()[1:]]))
    pq.write_table(both, folder / "bad-row.parquet")
    return folder


COMMANDS = {
    "inspect": ["inspect", "{in}/events.parquet"],
    "inspect-json": ["inspect", "{in}/events.parquet", "--json"],
    "anonymize": ["anonymize", "{in}/events.parquet", "{out}/r.parquet", "--k", "3"],
    "csv": ["anonymize", "{in}/events.parquet", "{out}/r.csv", "--k", "2", "--seed", "1", "--json"],
    "full": ["anonymize", "{in}/events.parquet", "{out}/r.parquet", "--geo", "--compact"],
    "private": [
        "anonymize",
        "{in}/events.parquet",
        "{out}/r.parquet",
        "--audit",
        "{out}/private.parquet",
        "--run-record",
        "{out}/private.json",
    ],
    "measure": [
        "measure",
        "{in}/events.parquet",
        "--k",
        "2,5",
        "--unicity",
        "--sample",
        "30",
        "--plots",
        "{out}/figures",
        "--json",
    ],
    "measure-table": ["measure", "{in}/events.parquet", "--k", "2", "--output", "{out}/private.parquet"],
    "measure-too-large-k": ["measure", "{in}/events.parquet", "--k", "900"],
    "dry-run": ["anonymize", "{in}/events.parquet", "{out}/r.parquet", "--dry-run"],
    "too-large-k": ["anonymize", "{in}/events.parquet", "{out}/r.parquet", "--k", "900"],
    "cut": ["anonymize", "{in}/cut.parquet", "{out}/r.parquet"],
    "strict": ["anonymize", "{in}/bad-row.parquet", "{out}/r.parquet", "--strict"],
    "wrong-columns": ["anonymize", "{in}/events.parquet", "{out}/r.parquet", "--columns", "user=nobody"],
    "verify": ["verify", "{in}/events.parquet", "{release}", "--json"],
    "verify-fails": ["verify", "{in}/events.parquet", "{release}", "--k", "50"],
    "attack": ["attack", "{in}/events.parquet", "{release}", "--attack", "all", "--victims", "50"],
    "attack-table": [
        "attack",
        "{in}/events.parquet",
        "{release}",
        "--attack",
        "all",
        "--audit",
        "{audit}",
        "--other",
        "{release}",
        "--output",
        "{out}/table.csv",
        "--json",
    ],
    "attack-fails": ["attack", "{in}/events.parquet", "{release}", "--k", "50"],
    "attack-wrong": ["attack", "{in}/events.parquet", "{release}", "--attack", "owner", "--audit", "{release}"],
    "promesse": ["anonymize", "{in}/events.parquet", "{out}/r.parquet", "--method", "promesse", "--split-gap", "4h"],
    "promesse-too-long": ["anonymize", "{in}/events.parquet", "{out}/r.csv", "--method", "promesse", "--step", "90km"],
    "noise-wrong": [
        "anonymize",
        "{in}/events.parquet",
        "{out}/r.csv",
        "--method",
        "geo-indistinguishability",
        "--epsilon",
        "-1",
    ],
    "evaluate": ["evaluate", "{in}/events.parquet", "{release}", "--audit", "{audit}", "--output", "{out}/table.csv"],
    "evaluate-fails": ["evaluate", "{in}/events.parquet", "{release}", "--audit", "{release}"],
    "compare-points": ["compare", "{in}/events.parquet", "--methods", "raw,promesse", "--output", "{out}/table.json"],
    "synth": ["synth", "{out}/s.parquet", "--users", "5", "--days", "1"],
    "demo": ["demo", "--users", "40", "--folder", "{out}/demo"],
}


FAILS = {
    "measure-too-large-k": 2,
    "too-large-k": 2,
    "cut": 2,
    "strict": 2,
    "wrong-columns": 2,
    "verify-fails": 1,
    "attack-fails": 1,
    "attack-wrong": 2,
    "promesse-too-long": 2,
    "noise-wrong": 2,
    "evaluate-fails": 2,
}


@pytest.fixture(scope="module")
def release(planted, tmp_path_factory):
    path = tmp_path_factory.mktemp("released") / "r.parquet"
    shoal.KScale(k=2).anonymize(shoal.read(planted / "events.parquet")).write(
        path, audit=path.with_name("private.parquet")
    )
    return path


@pytest.mark.parametrize("name", COMMANDS)
def test_canary(run, planted, release, tmp_path, name):
    out, home = tmp_path / "out", tmp_path / "home"
    out.mkdir()
    (home / "tmp").mkdir(parents=True)
    audit = release.with_name("private.parquet")
    places = {"in": planted, "out": out, "release": release, "audit": audit}
    keep_kernels = os.environ.get("NUMBA_CACHE_DIR") or shoal_kernels()
    env = {"HOME": str(home), "TMPDIR": str(home / "tmp"), "XDG_CACHE_HOME": str(home), "NUMBA_CACHE_DIR": keep_kernels}
    done = run(*[part.format(**places) for part in COMMANDS[name]], env=env, cwd=home)
    assert done.returncode == FAILS.get(name, 0), done.stderr
    assert "Traceback" not in done.stderr
    said = (done.stdout + done.stderr).encode()
    assert not [canary for canary in BYTES if canary in said]
    assert FOLDER.encode() not in said
    for path in (p for p in tmp_path.rglob("*") if p.is_file() and not p.name.startswith("private")):
        content = path.read_bytes() + decoded(path)
        assert not [canary for canary in BYTES + STRICTER if canary in content], path.name
    assert not list((home / "tmp").iterdir())


def shoal_kernels():
    from shoal.jit import _BASE

    return _BASE


def decoded(path):
    """The content of a Parquet file without its compression."""
    if path.suffix != ".parquet":
        return b""
    table = pq.read_table(path)
    raw = b"".join(
        buffer.to_pybytes()
        for column in table.columns
        for chunk in column.chunks
        for buffer in chunk.buffers()
        if buffer
    )
    return raw + table.to_pandas().to_csv().encode()


def test_the_canaries_would_be_found(planted):
    """The test can fail: the input itself, and an audit file, do hold canaries."""
    content = decoded(planted / "events.parquet")
    assert USER.encode() in content
    assert struct.pack("<d", LAT) in content
    assert COLUMN.encode() in content
