"""SIGKILL around publishing: a release that may be out is in the ledger, and counts."""

import json
import os

import pytest

import shoal
from tests.forked import COMMAND, Forked, forked

# Where the process dies: just before anything is moved into place, between the data and its manifest, or when all is
# published and only the ledger is still to be told.
DIE = "import os, signal\ndef die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)\n"
MOMENTS = {
    "before": "import shoal.publishing.stage as s\ns.switch = die\n",
    "between": (
        "import shoal.switch as s\nreal = s.place_new\n"
        "def place(file, target): return die() if target.name.endswith('.json') else real(file, target)\n"
        "s.place_new = place\n"
    ),
    "after": "from shoal.publishing.ledger.book import Book\nBook.confirm = die\n",
}


def entries(ledger):
    return json.loads(ledger.read_bytes().split(b"\n")[1])["releases"]


def arguments(events, folder, name, *more):
    return ["anonymize", str(events), str(folder / name), "--k", "2", "--ledger", str(folder / "book"), *more]


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_while_publishing(one_day, run, tmp_path, moment):
    code, _, said = forked(DIE + MOMENTS[moment] + COMMAND, *arguments(one_day, tmp_path, "r.parquet"))
    assert code == -9, said
    (begun,) = entries(tmp_path / "book")
    assert begun["published"] is None
    manifest = tmp_path / "r.parquet.manifest.json"
    assert manifest.exists() == (moment == "after")
    if moment == "after":
        assert json.loads(manifest.read_text())["files"]["r.parquet"] == begun["sha256"]
    done = run(*arguments(one_day, tmp_path, "s.parquet"), check=2)
    assert "begun and never confirmed" in done.stderr
    assert not (tmp_path / "s.parquet").exists()
    done = run(*arguments(one_day, tmp_path, "s.parquet", "--allow-overlap"), check=0)
    assert "never confirmed" in done.stdout
    assert [one["published"] is None for one in entries(tmp_path / "book")] == [True, False]
    assert shoal.verify(one_day, tmp_path / "s.parquet").ok
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_two_runs_at_once(one_day, tmp_path):
    """One of them publishes; the other is told to wait, or that its people are out already."""
    both = [Forked(COMMAND, *arguments(one_day, tmp_path, f"{n}.parquet")) for n in range(2)]
    codes, _, said = zip(*[process.end() for process in both], strict=True)
    assert sorted(codes) == [0, 2], said
    (refused,) = [text for text in said if text]
    assert "another run" in refused or "people are in an earlier release" in refused
    assert len(entries(tmp_path / "book")) == 1
    assert len(list(tmp_path.glob("*.manifest.json"))) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_can_not_be_written_to(one_day, run, tmp_path):
    (tmp_path / "closed").mkdir(mode=0o500)
    done = run(
        "anonymize", one_day, tmp_path / "r.parquet", "--k", 2, "--ledger", tmp_path / "closed" / "book", check=2
    )
    assert "can't be written to" in done.stderr
    assert not (tmp_path / "r.parquet").exists()
