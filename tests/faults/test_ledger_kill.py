"""SIGKILL around publishing: the ledger has a release if, and only if, the release is out or about to be."""

import json
import os

import pytest

import shoal
from tests.forked import COMMAND, Forked, forked

# Where the process dies: just before anything is moved into place, between the ledger and the release, between the
# data and its manifest, or when all is published.
DIE = "import os, signal\ndef die(*_, **__): os.kill(os.getpid(), signal.SIGKILL)\n"
BETWEEN = (
    "import shoal.switch as s\nreal = s.place_new\n"
    "def place(file, target): return die() if target.name.endswith({!r}) else real(file, target)\n"
    "s.place_new = place\n"
)
MOMENTS = {
    "before": "import shoal.publishing.stage as s\ns.switch = die\n",
    "after the ledger": BETWEEN.format(".parquet"),
    "after the data": BETWEEN.format(".json"),
    "after": "import shoal.switch as s\ns._forget = die\n",
}


def entries(ledger):
    return json.loads(ledger.read_bytes().split(b"\n")[1])["releases"]


def arguments(events, folder, name, *more):
    return ["anonymize", str(events), str(folder / name), "--k", "2", "--ledger", str(folder / "book"), *more]


@pytest.mark.parametrize("first", ["release", "ledger"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_while_publishing(one_day, run, tmp_path, moment, first):
    """Whoever comes next, to the release or to the ledger, finishes both or finds neither."""
    (tmp_path / "private").mkdir()
    book, release = tmp_path / "private" / "book", tmp_path / "r.parquet"
    publish = ["anonymize", str(one_day), "--k", "2", "--ledger", str(book)]
    code, _, said = forked(DIE + MOMENTS[moment] + COMMAND, *publish, str(release))
    assert code == -9, said
    assert book.exists() == (moment != "before")
    if first == "release" and moment != "before":
        run("verify", one_day, release, check=0)
    done = run(*publish, tmp_path / "s.parquet", check=0 if moment == "before" else 2)
    assert ("people are in an earlier release" in done.stderr) == (moment != "before")
    assert "begun" not in done.stderr
    name = "s.parquet" if moment == "before" else "r.parquet"
    (noted,) = entries(book)
    assert noted["published"] is not None
    assert json.loads((tmp_path / f"{name}.manifest.json").read_text())["files"][name] == noted["sha256"]
    assert shoal.verify(one_day, tmp_path / name).ok
    left = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))
    assert left == ["private", "private/book", name, f"{name}.manifest.json"]


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
