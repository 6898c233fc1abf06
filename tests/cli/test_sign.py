"""Signatures on the command line: make a key, publish, sign later, and check as a recipient does."""

import json

import pytest

from shoal.publishing.signing import PASSPHRASE


@pytest.fixture
def key(run, monkeypatch):
    monkeypatch.delenv(PASSPHRASE, raising=False)
    made = run("sign", "--new-key", "k.pem", check=0)
    return made.stdout.splitlines()[-1].strip()


def test_from_a_key_to_a_verdict(run, one_day, key, tmp_path):
    run("anonymize", one_day, "r.parquet", "--k", 2, "--sign", "k.pem", "--quiet", check=0)
    said = run("verify", one_day, "r.parquet", "--public-key", "k.pem.pub", "--quiet", check=0).stdout
    assert said.startswith("r.parquet: HOLDS")
    assert key in said
    alone = run("verify", "r.parquet", "--public-key", "k.pem.pub", check=0).stdout
    assert alone.startswith("r.parquet: SIGNED WITH THE GIVEN KEY; THE CLAIM WAS NOT CHECKED")
    assert "An adversary can still" not in alone
    figures = run("verify", "r.parquet", "--public-key", "k.pem.pub", "--json", check=0).json
    assert (figures["ok"], figures["shown"], figures["checked"]) == (True, None, ["signature", "integrity"])

    run("sign", "--new-key", "other.pem", check=0)
    wrong = run("verify", "r.parquet", "--public-key", "other.pem.pub", check=1).stdout
    assert "DOES NOT HOLD" in wrong
    assert "signature/other-key" in wrong
    assert "signed already" in run("sign", "r.parquet", "--key", "other.pem", check=2).stderr
    assert key not in run("sign", "r.parquet", "--key", "other.pem", "--overwrite", check=0).stdout
    run("verify", "r.parquet", "--public-key", "other.pem.pub", check=0)

    manifest = json.loads((tmp_path / "r.parquet.manifest.json").read_text())
    del manifest["signature"]
    (tmp_path / "r.parquet.manifest.json").write_text(json.dumps(manifest))
    assert "signature/missing" in run("verify", "r.parquet", "--public-key", "k.pem.pub", check=1).stdout
    assert run("sign", "r.parquet", "--key", "k.pem", "--json", check=0).json["ok"]


def test_an_encrypted_key_needs_its_passphrase(run, monkeypatch):
    monkeypatch.setenv(PASSPHRASE, "open sesame")
    assert "encrypted" in run("sign", "--new-key", "k.pem", check=0).stdout
    monkeypatch.delenv(PASSPHRASE)
    failed = run("anonymize", "nowhere.csv", "r.parquet", "--k", 2, "--sign", "k.pem", check=2)
    assert PASSPHRASE in failed.stderr
    monkeypatch.setenv(PASSPHRASE, "open")
    failed = run("anonymize", "nowhere.csv", "r.parquet", "--k", 2, "--sign", "k.pem", check=2)
    assert "the passphrase is wrong" in failed.stderr
    assert "sesame" not in failed.stderr


def test_on_a_terminal_the_passphrase_is_asked_for(run, monkeypatch):
    monkeypatch.setenv(PASSPHRASE, "open sesame")
    run("sign", "--new-key", "k.pem", check=0)
    monkeypatch.delenv(PASSPHRASE)
    monkeypatch.setattr("sys.stdin", type("Terminal", (), {"isatty": lambda _: True})())
    for answer, said in (("open sesame", "can't be read"), ("open", "is wrong"), (EOFError(), PASSPHRASE)):

        def answered(_, answer=answer):
            if isinstance(answer, EOFError):
                raise answer
            return answer

        monkeypatch.setattr("shoal.cli.sign.getpass", answered)
        assert said in run("sign", "nowhere.parquet", "--key", "k.pem", check=2).stderr


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["sign"], "--new-key"),
        (["sign", "r.parquet"], "--key"),
        (["sign", "--key", "k.pem"], "RELEASE"),
        (["sign", "r.parquet", "--key", "nowhere.pem"], "nowhere.pem"),
        (["sign", "r.parquet", "--key", "k.pem"], "can't be read"),
        (["sign", "--new-key", "k.pem"], "never overwritten"),
        (["sign", "--new-key", "nowhere/k.pem"], "can't be written"),
        (["verify", "r.parquet"], "ORIGINAL"),
        (["verify", "r.parquet", "--public-key", "k.pem.pub", "--k", "3"], "ORIGINAL"),
        (["verify", "r.parquet", "--public-key", "k.pem"], "private key"),
        (["verify", "r.parquet", "--public-key", "nowhere.pub"], "nowhere.pub"),
        (["verify", "r.parquet", "--public-key", "k.pem.pub"], "can't be read"),
    ],
    ids=range(12),
)
def test_what_is_missing_or_wrong_is_said(run, key, arguments, word):
    assert word in run(*arguments, check=2).stderr
