"""Canaries around the ledger and measure: labels, places and times are in no ledger, table or message."""

import struct

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal

LAT, LNG, TIME_MS = 14.716677123456, -17.467686987654, 1_767_614_461_234  # 2026-01-05 12:01:01.234
NUMBER = 221_770_123_456_789  # as a number, its digits in bytes and in text
TEXTS = ["CanaryPerson", str(NUMBER), str(LAT), str(LNG), str(LAT)[:9], str(TIME_MS), "12:01:01", "canary_folder"]
BYTES = [
    *(text.encode() for text in TEXTS),
    *(struct.pack("<d", value) for value in (LAT, LNG)),
    *(struct.pack(order, value) for order in ("<q", ">q") for value in (TIME_MS, NUMBER)),
]


def plant(path, labels):
    """Generated people, and two whose labels, place and times are canaries."""
    table = shoal.synthesize(users=40, scene="town", days=3, seed=1)
    kind = pa.array(labels).type
    canary = pa.table(
        {
            "uid": pa.array([labels[n % 2] for n in range(40)], kind),
            "datetime": pa.array([TIME_MS + 3_600_000 * (n // 2) for n in range(40)], pa.timestamp("ms", tz="UTC")),
            "lat": np.full(40, LAT),
            "lng": np.full(40, LNG),
        }
    )
    others = table.set_column(0, "uid", table["uid"].cast(kind))
    pq.write_table(pa.concat_tables([others, canary.cast(others.schema)]), path)
    return path


@pytest.mark.parametrize("labels", [["CanaryPerson1", "CanaryPerson2"], [NUMBER, NUMBER + 1]], ids=["text", "number"])
def test_nothing_of_the_data_is_in_a_ledger_or_a_message(run, tmp_path, labels):
    folder = tmp_path / "canary_folder"
    folder.mkdir()
    events = plant(folder / "events.parquet", labels)
    assert [canary for canary in BYTES if canary in raw(events)]  # the test can fail
    ledger = tmp_path / "book"
    command = ["anonymize", events, tmp_path / "r.parquet", "--ledger", ledger, "--overwrite"]
    said = [
        run(*command, check=0),
        run(*command, check=2),
        run(*command, "--json", check=2),
        run(*command, "--dry-run", check=2),
        run(*command, "--allow-overlap", check=0),
        run(*command, "--allow-overlap", "--method", "k-scale", "--json", check=0),
        run("measure", events, "--unicity", "--output", tmp_path / "unicity.csv", check=0),
        run("measure", events, "--unicity", "--sample", "5000", "--points", "1", "--json", check=0),
        run("measure", events, "--unicity", "--resolution", "1m/1s", check=2),
    ]
    texts = [(done.stdout + done.stderr).encode() for done in said]
    files = [ledger.read_bytes(), (tmp_path / "unicity.csv").read_bytes()]
    ledger.write_bytes(files[0][:-1])
    texts.append(run(*command, check=2).stderr.encode())
    for content in texts + files:
        assert not [canary for canary in BYTES if canary in content]
    assert all(b"Traceback" not in text for text in texts)


def raw(path):
    columns = pq.read_table(path).columns
    buffers = (buffer for column in columns for chunk in column.chunks for buffer in chunk.buffers() if buffer)
    return b"".join(buffer.to_pybytes() for buffer in buffers)
