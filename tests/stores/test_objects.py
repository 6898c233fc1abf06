"""Events from buckets, releases into buckets; S3 is a double, the others only by their addresses."""

import bz2
import gzip
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import shoal
from shoal.errors import AlreadyExists, CannotCheck, InputError, OutputError, SettingsError, UnreadableFile
from shoal.publishing.targets import objects
from shoal.stores.addresses import object_parts
from shoal.stores.objects import opened_bucket

CSV = "uid,datetime,lat,lng\n{who},2026-03-01T08:00:00Z,39.9,116.4\n"


def users(address, **options):
    return sorted(shoal.read(address, **options).labels.to_pylist())


@pytest.fixture
def filled(bucket):
    for who, key in {"ann": "in/a.csv", "bob": "in/day=2/b.csv", "eve": "in/_old/c.csv", "dan": "in/d.txt2"}.items():
        bucket.put(key, CSV.format(who=who).encode())
    bucket.put("in/day=3/e.csv.gz", gzip.compress(CSV.format(who="gil").encode()))
    bucket.put("in/day=3/f.csv.bz2", bz2.compress(CSV.format(who="hal").encode()))
    return bucket


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("in/a.csv", ["ann"]),
        ("in", ["ann", "bob", "gil", "hal"]),
        ("in/", ["ann", "bob", "gil", "hal"]),
        ("in/*.csv", ["ann"]),
        ("in/*/*.csv", ["bob", "eve"]),
        ("in/**/*.csv*", ["ann", "bob", "eve", "gil", "hal"]),
        ("in/day=[23]/*.csv.gz", ["gil"]),
    ],
)
def test_objects_prefixes_and_patterns_are_read(filled, key, expected):
    assert users(filled.address(key)) == expected


def test_an_endpoint_in_the_address(filled, store, monkeypatch):
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    host = store.partition("//")[2]
    assert users(f"{filled.address('in/a.csv')}?endpoint_override={host}&scheme=http&region=us-east-1") == ["ann"]


def test_several_inputs_and_files(filled, tmp_path):
    (tmp_path / "z.csv").write_text(CSV.format(who="zoe"))
    assert users([filled.address("in/a.csv"), str(tmp_path / "z.csv"), filled.address("in/a.csv")]) == ["ann", "zoe"]


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("in/nothing.csv", "there is no such object"),
        ("in/x*.csv", "no object matches"),
        ("in/_old", "no object below that name has an ending"),
        ("in/d.txt2", "told by its ending"),
    ],
)
def test_what_is_not_there(filled, key, said):
    if key == "in/_old":
        filled.put("other/x.dat", b"x")
        key = "other"
    with pytest.raises(UnreadableFile, match=said) as raised:
        users(filled.address(key))
    assert "canary-bucket" not in str(raised.value)


def test_a_bucket_that_is_not_there(filled):
    with pytest.raises(UnreadableFile, match="no such object"):
        users("s3://canary-nobucket/x.csv")


def test_too_little_disk_is_said_before_anything_is_fetched(filled, monkeypatch):
    from shoal.reading.forms import objects as forms

    monkeypatch.setattr(forms.shutil, "disk_usage", lambda _: type("", (), {"free": 10})())
    monkeypatch.setattr(forms, "copied_from", None)
    with pytest.raises(shoal.ShoalError, match="more than the 10 B"):
        users(filled.address("in/a.csv"))


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("s3://CanaryKey:CanarySecret@bucket/x.csv", "without credentials"),
        ("s3://b/x.csv?secret_key=CanarySecret", "unknown options"),
        ("s3://", "names its bucket"),
        ("gs://b/x.csv?anonymous=yes&endpoint_override=127.0.0.1:9&scheme=http&x=1", "unknown options"),
        ("az://container/x.csv", "AZURE_STORAGE_ACCOUNT"),
        ("ftp://host/x.csv", "can't be read"),
    ],
)
def test_addresses_that_can_not_be_used(address, said, monkeypatch):
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT", raising=False)
    with pytest.raises((SettingsError, InputError), match=said) as raised:
        users(address)
    assert "Canary" not in str(raised.value)


def test_google_and_azure_are_opened_with_their_options(monkeypatch):
    """Their file systems connect only when something is read."""
    with opened_bucket("gs://bucket/a/x.csv?anonymous=true") as google:
        assert (type(google.files).__name__, google.path) == ("GcsFileSystem", "bucket/a/x.csv")
    monkeypatch.setenv("AZURE_STORAGE_KEY", "Q2FuYXJ5")
    with opened_bucket("az://container/x.csv?account_name=acc") as azure:
        assert (type(azure.files).__name__, azure.path) == ("AzureFileSystem", "container/x.csv")
    assert object_parts("s3://b/a?/x.csv") == ("s3", "b/a?/x.csv", "")


@pytest.mark.parametrize("name", ["r.parquet", "r.csv"])
def test_a_release_goes_to_a_bucket_and_is_read_from_there(one_day, bucket, tmp_path, run, name):
    target = bucket.address(f"out/{name}")
    done = run("anonymize", one_day, target, "--k", 2, "--audit", "audit.parquet", check=0)
    assert f"s3://…/{name}" in done.stdout
    assert bucket.keys() == [f"out/{name}", f"out/{name}.manifest.json"]
    assert {path.name for path in tmp_path.iterdir()} == {"audit.parquet", f"{name}.run.json"}
    run("verify", one_day, target, "--k", 2, "--audit", "audit.parquet", check=0)
    again = run("anonymize", one_day, target, "--k", 2, check=2)
    assert "is there already" in again.stderr
    if name == "r.parquet":
        assert len(shoal.read_release(target)) == 120
        before = bucket.get(f"out/{name}")
        run("anonymize", one_day, target, "--k", 2, "--overwrite", check=0)
        assert bucket.get(f"out/{name}") != before
        assert bucket.keys() == [f"out/{name}", f"out/{name}.manifest.json"]
        run("verify", one_day, target, "--k", 2, check=0)


def test_a_signed_release_in_a_bucket_is_checked_there(one_day, bucket):
    key = shoal.SigningKey(Ed25519PrivateKey.generate())
    shoal.publish(one_day, bucket.address("r.parquet"), shoal.KScale(k=2), sign=key)
    assert shoal.verify_signature(bucket.address("r.parquet"), key.public).ok
    manifest = json.loads(bucket.get("r.parquet.manifest.json"))
    bucket.put("r.parquet.manifest.json", json.dumps({**manifest, "signature": None}).encode())
    assert shoal.verify_signature(bucket.address("r.parquet"), key.public).codes == ("signature/malformed",)


def test_data_that_was_changed_in_the_bucket_does_not_verify(one_day, bucket):
    target = bucket.address("r.parquet")
    shoal.publish(one_day, target, shoal.KScale(k=2))
    manifest = json.loads(bucket.get("r.parquet.manifest.json"))
    bucket.put("r.parquet.manifest.json", json.dumps({**manifest, "files": {"r.parquet": "0" * 64}}).encode())
    assert shoal.verify(one_day, target).codes == ("integrity/hash",)
    with pytest.raises(UnreadableFile, match="does not match"):
        shoal.read_release(target)
    with pytest.raises(CannotCheck, match="no such object"):
        shoal.verify(one_day, bucket.address("other.parquet"))


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("step", ["upload", "other", "manifest"])
def test_a_failed_upload_publishes_nothing(one_day, bucket, monkeypatch, step, overwrite, tmp_path):
    """With `overwrite` the old release stays, unless the very last step fails: then it is said."""
    target = bucket.address("r.parquet")
    if overwrite:
        shoal.publish(one_day, target, shoal.KScale(k=2), audit=tmp_path / "audit.parquet")
    before = bucket.keys(), overwrite and (tmp_path / "audit.parquet").read_bytes()
    uploaded, hashed = objects._uploaded, objects._hash_of

    def upload(place, file, path):
        if path.endswith(".json") == (step == "manifest") and step != "other":
            raise OSError("AWS Error NETWORK_CONNECTION")
        return uploaded(place, file, path)

    monkeypatch.setattr(objects, "_uploaded", upload)
    if step == "other":
        monkeypatch.setattr(objects, "_hash_of", lambda *place: ("0", hashed(*place)[1]))
    with pytest.raises(OutputError, match="not what was sent" if step == "other" else "no server answers"):
        shoal.publish(one_day, target, shoal.KScale(k=2), audit=tmp_path / "audit.parquet", overwrite=overwrite)
    assert bucket.keys() == before[0]
    files = {path.name for path in tmp_path.iterdir() if ".run.json" not in path.name}
    if not overwrite:
        assert files == set()
    elif step == "manifest":
        assert files == {"audit.parquet", "audit.parquet.before"}
        assert (tmp_path / "audit.parquet.before").read_bytes() == before[1]
    else:
        assert (files, (tmp_path / "audit.parquet").read_bytes()) == ({"audit.parquet"}, before[1])
        monkeypatch.undo()


def test_an_input_is_never_overwritten(filled):
    for source, target in (("in/a.csv", "in/a.csv"), ("in", "in/out.parquet")):
        with pytest.raises(OutputError, match="is an input"):
            shoal.publish(filled.address(source), filled.address(target), shoal.KScale(k=2), overwrite=True)
    with pytest.raises(AlreadyExists):
        shoal.publish(filled.address("in/*.csv"), filled.address("in/a.csv"), shoal.KScale(k=2))
