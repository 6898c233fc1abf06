"""Canaries around the ledger and measure: labels, places and times are in no ledger, table or message."""

import struct

import pyarrow.parquet as pq
import pytest

from tests.security.test_canary import BYTES as ALWAYS
from tests.security.test_canary import FOLDER, TIME_MS, USER, raw, with_canaries

NUMBER = 221_770_123_456_789  # as a number, its digits in bytes and in text
BYTES = [
    *(*ALWAYS, FOLDER.encode(), str(NUMBER).encode()),
    *(struct.pack(order, value) for order in ("<q", ">q") for value in (TIME_MS, NUMBER)),
]


@pytest.mark.parametrize("labels", [[f"{USER}1", f"{USER}2"], [NUMBER, NUMBER + 1]], ids=["text", "number"])
def test_nothing_of_the_data_is_in_a_ledger_or_a_message(run, tmp_path, labels):
    folder = tmp_path / FOLDER
    folder.mkdir()
    events = folder / "events.parquet"
    pq.write_table(with_canaries(labels, users=40), events)
    assert [canary for canary in BYTES if canary in raw(pq.read_table(events))]  # the test can fail
    ledger = tmp_path / "book"
    command = ["anonymize", events, tmp_path / "r.parquet", "--k", 2, "--ledger", ledger, "--overwrite"]
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
