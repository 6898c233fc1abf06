"""Signed manifests: keys, signatures, and what somebody may try who can change the files but has not the key."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

import shoal
from shoal.errors import AlreadyExists, CannotCheck, NotVerified, OutputError, SettingsError, ShoalError, SigningError
from shoal.folders import claimed
from shoal.publishing import signing
from shoal.publishing.signing import SigningKey
from shoal.publishing.stage import Staged
from shoal.seen import signature as seen
from shoal.seen.signature import PublicKey, read_public_key
from shoal.signing import new_key
from tests.forked import TOUCH, forked
from tests.oracle import ed25519 as oracle

SECRET = bytes(range(32))
OURS = SigningKey(Ed25519PrivateKey.from_private_bytes(SECRET))
OTHER = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes(32)))
NAME = "r.csv"
BESIDE = f"{NAME}.manifest.json"


@pytest.fixture(scope="module")
def people(one_day):
    return shoal.read(one_day)


@pytest.fixture(scope="module")
def made(people, tmp_path_factory):
    """Two folders with a release each, of the same name, signed with our key; the second with another k."""
    folders = [tmp_path_factory.mktemp("signed") for _ in range(2)]
    for k, folder in enumerate(folders, 2):
        shoal.KScale(k=k).anonymize(people).write(folder / NAME, sign=OURS)
    return folders


@pytest.fixture
def release(made, tmp_path):
    shutil.copytree(made[0], tmp_path, dirs_exist_ok=True)
    return tmp_path / NAME


def manifest_of(release):
    return json.loads(release.with_name(BESIDE).read_bytes())


def put(release, manifest):
    text = manifest if isinstance(manifest, str) else json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    release.with_name(BESIDE).write_text(text)


def canonical(manifest):
    """What is signed, as the page on formats describes it."""
    unsigned = {name: manifest[name] for name in manifest if name != "signature"}
    return b"shoal manifest v1\n" + json.dumps(unsigned, sort_keys=True, separators=(",", ":")).encode()


# The form


def test_a_signature_is_one_of_rfc_8032_over_what_the_page_on_formats_says(release):
    manifest = manifest_of(release)
    assert list(manifest) == ["shoal", "counts", "seeded", "files", "signature"]
    public, value = (base64.b64decode(manifest["signature"][name]) for name in ("public_key", "value"))
    assert manifest["signature"]["algorithm"] == "ed25519"
    assert public == OURS.public == oracle.public_of(SECRET)
    assert value == oracle.signed(SECRET, canonical(manifest))
    assert oracle.verified(public, canonical(manifest), value)


def test_the_manifest_is_otherwise_the_unsigned_one(people, tmp_path):
    manifests = []
    for name, key in (("a", None), ("b", OURS)):
        (tmp_path / name).mkdir()
        shoal.KScale(k=2).anonymize(people).write(tmp_path / name / NAME, sign=key, seed=1)
        manifests.append((tmp_path / name / BESIDE).read_text())
    plain, signed = manifests
    assert "signature" not in plain
    assert signed.startswith(plain.removesuffix("\n}\n"))
    assert (tmp_path / "a" / NAME).read_bytes() == (tmp_path / "b" / NAME).read_bytes()


def test_what_is_signed_does_not_depend_on_the_order_of_keys_or_an_earlier_signature():
    manifest = {"b": 1, "a": {"d": 0.1, "c": "é"}}
    turned = {"a": {"c": "é", "d": 0.1}, "signature": {"x": 1}, "b": 1}
    assert OURS.sign(manifest)["signature"] == OURS.sign(turned)["signature"] != OTHER.sign(manifest)["signature"]


def test_a_key_is_not_printed():
    assert "Ed25519" not in repr(OURS)
    assert OURS.key.private_bytes_raw().hex() not in repr(OURS)


# Verdicts


def test_a_signed_release_holds_with_the_key_and_without(release, people):
    known = shoal.verify(people, release, k=2, public_key=OURS.public)
    unknown = shoal.verify(people, release, k=2)
    fingerprint = PublicKey(OURS.public).fingerprint
    assert (known.ok, unknown.ok) == (True, True)
    assert ("signature" in known.checked, "signature" in unknown.checked) == (True, False)
    assert any("given key" in message and fingerprint in message for message in known.messages)
    assert any("`public_key`" in message and fingerprint in message for message in unknown.messages)
    assert shoal.read_release(release).claim.k == 2


def test_a_recipient_needs_no_original(release):
    verdict = shoal.verify_signature(release, OURS.public)
    assert verdict.ok
    assert (verdict.shown, verdict.checked) == (None, ("signature", "integrity"))
    assert "NOT CHECKED" in verdict.result
    assert verdict.not_checked == ("whether the claim holds, which needs the original",)
    assert "HOLD" not in verdict.result


def test_the_wrong_key_does_not_hold(release, people):
    for verdict in (
        shoal.verify(people, release, k=2, public_key=OTHER.public),
        shoal.verify_signature(release, OTHER.public),
    ):
        assert (verdict.ok, verdict.codes) == (False, ("signature/other-key",))


def test_a_release_in_memory_has_no_signature(people):
    with pytest.raises(SettingsError, match="in memory"):
        shoal.verify(people, shoal.KScale(k=2).anonymize(people), k=2, public_key=OURS.public)


# Attacks by somebody who can change all files, and knows the public key


def stripped(manifest, _):
    del manifest["signature"]
    return manifest


def with_part(name, value):
    def change(manifest, _):
        stated = manifest["signature"]
        return {**manifest, "signature": {**stated, name: value(stated[name]) if callable(value) else value}}

    return change


def raw(change):
    """Change the bytes behind base64."""
    return lambda text: base64.b64encode(change(base64.b64decode(text))).decode()


def without(name):
    return lambda manifest, _: {
        **manifest,
        "signature": {key: value for key, value in manifest["signature"].items() if key != name},
    }


def small_order(manifest, y=1):
    """The key is a point of small order, and the signature one that fits any text: R = s·B."""
    key, point = y.to_bytes(32, "little"), oracle.encoded(oracle.times(7, oracle.BASE))
    value = point + (7).to_bytes(32, "little")
    if y == 1:
        assert oracle.verified(key, b"anything", value)
    parts = {"public_key": base64.b64encode(key).decode(), "value": base64.b64encode(value).decode()}
    return {**manifest, "signature": {"algorithm": "ed25519", **parts}}


def added_order(value):
    """Return s + L in place of s: another text of the same signature, if nobody looks."""
    return value[:32] + (int.from_bytes(value[32:], "little") + oracle.L).to_bytes(32, "little")


def last_bits(text):
    """Set bits of the last letter of base64 that carry nothing."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    body = text.rstrip("=")
    other = body[:-1] + letters[letters.index(body[-1]) + 1] + "=" * (len(text) - len(body))
    assert base64.b64decode(other) == base64.b64decode(text)
    return other


def other_format(manifest, _):
    return {**manifest, "shoal": {**manifest["shoal"], "format": 2}}


def weaker(manifest, _):
    counts = {**manifest["counts"], "records": manifest["counts"]["records"] - 1}
    return {**manifest, "counts": counts}


ATTACKS = {
    "stripped": (stripped, "signature/missing"),
    "emptied": (lambda manifest, _: {**manifest, "signature": None}, "signature/malformed"),
    "of another release of the same name": (
        lambda manifest, other: {**manifest, "signature": other["signature"]},
        "signature/wrong",
    ),
    "the whole manifest of another release": (lambda _, other: other, "integrity/hash"),
    "signed by another key": (lambda manifest, _: OTHER.sign(manifest), "signature/other-key"),
    "signed by another key, under our name": (
        lambda manifest, _: with_part("public_key", manifest["signature"]["public_key"])(OTHER.sign(manifest), None),
        "signature/wrong",
    ),
    "changed counts": (weaker, "signature/wrong"),
    "another seed": (lambda manifest, _: {**manifest, "seeded": True}, "signature/wrong"),
    "another version of the manifest": (other_format, "signature/wrong"),
    "one more key": (lambda manifest, _: {**manifest, "note": "hello"}, "signature/wrong"),
    "one more key in the signature": (with_part("note", "hello"), "signature/malformed"),
    "unknown algorithm": (with_part("algorithm", "ed448"), "signature/algorithm"),
    "no algorithm": (with_part("algorithm", "none"), "signature/algorithm"),
    "algorithm in capitals": (with_part("algorithm", "Ed25519"), "signature/algorithm"),
    "algorithm that is a list": (with_part("algorithm", ["ed25519"]), "signature/malformed"),
    "without the algorithm": (without("algorithm"), "signature/malformed"),
    "without the key": (without("public_key"), "signature/malformed"),
    "without the value": (without("value"), "signature/malformed"),
    "value that is a number": (with_part("value", 5), "signature/malformed"),
    "letters beyond ASCII": (with_part("value", "é" * 88), "signature/malformed"),
    "short": (with_part("value", raw(lambda value: value[:-1])), "signature/malformed"),
    "empty": (with_part("value", ""), "signature/malformed"),
    "long": (with_part("value", raw(lambda value: value + b"\0")), "signature/malformed"),
    "trailing data after base64": (with_part("value", lambda text: f"{text}AAAA"), "signature/malformed"),
    "a line break in base64": (with_part("value", lambda text: f"{text}\n"), "signature/malformed"),
    "other last bits of base64": (with_part("value", last_bits), "signature/malformed"),
    "zeros": (with_part("value", raw(lambda value: bytes(64))), "signature/wrong"),
    "one bit": (with_part("value", raw(lambda value: bytes([value[0] ^ 1]) + value[1:])), "signature/wrong"),
    "s + L": (with_part("value", raw(added_order)), "signature/wrong"),
    "short key": (with_part("public_key", raw(lambda key: key[:-1])), "signature/malformed"),
    "key of small order": (lambda manifest, _: small_order(manifest), "signature/malformed"),
    "key of small order, written otherwise": (
        lambda manifest, _: small_order(manifest, oracle.P + 1),
        "signature/malformed",
    ),
    "lists in each other, deeply": (
        lambda manifest, _: json.dumps({**manifest, "counts": json.loads("[" * 900 + "]" * 900)}),
        "signature/wrong",
    ),
    "repeated key": (
        lambda manifest, _: json.dumps(manifest, indent=2).replace('"seeded"', '"seeded": true,\n  "seeded"') + "\n",
        "integrity/malformed",
    ),
    "blanks": (lambda manifest, _: json.dumps(manifest, indent=3), "integrity/malformed"),
    "trailing data": (lambda manifest, _: json.dumps(manifest, indent=2) + "\n{}", "integrity/malformed"),
    "not JSON": (lambda _manifest, _: "signed, honestly", "integrity/malformed"),
    "nothing": (lambda _manifest, _: "", "integrity/malformed"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_passes_for_the_publisher(attack, release, made):
    change, code = ATTACKS[attack]
    put(release, change(manifest_of(release), json.loads((made[1] / BESIDE).read_bytes())))
    verdict = shoal.verify_signature(release, OURS.public)
    assert not verdict.ok
    assert code in verdict.codes


# Whoever signs with a key of their own, or strips the signature, can be noticed only by those who know the right key.
UNNOTICED = {"stripped", "signed by another key"}


@pytest.mark.parametrize("attack", ATTACKS)
def test_without_a_key_a_signature_must_still_be_one_of_the_manifest(attack, release, made, people):
    change, code = ATTACKS[attack]
    put(release, change(manifest_of(release), json.loads((made[1] / BESIDE).read_bytes())))
    verdict = shoal.verify(people, release, k=2)
    assert verdict.ok == (attack in UNNOTICED)
    assert attack in UNNOTICED or code in verdict.codes


def test_a_changed_file_does_not_pass(release):
    release.write_bytes(release.read_bytes() + b"\n")
    assert shoal.verify_signature(release, OURS.public).codes == ("integrity/hash",)


def test_a_renamed_file_does_not_pass(release):
    """Else the release of March could be handed on as that of April."""
    moved = release.with_name("april.csv")
    release.rename(moved)
    release.with_name(BESIDE).rename(moved.with_name("april.csv.manifest.json"))
    assert shoal.verify_signature(moved, OURS.public).codes == ("integrity/file-names",)


def test_without_a_manifest_there_is_no_signature(release):
    release.with_name(BESIDE).unlink()
    assert "signature/missing" in shoal.verify_signature(release, OURS.public).codes


def test_all_points_of_small_order_are_no_keys():
    """Eight times each of them is zero, by the twin; with the bit of the sign, and with y written as y + p, too."""
    found = set()
    for y in sorted(seen._SMALL):
        for sign in (0, 1 << 255):
            text = (y | sign).to_bytes(32, "little")
            point = oracle.decoded(text)
            if point is not None:
                assert oracle.times(8, point) == (0, 1)
                found.add(point)
            for written in {text, ((y + oracle.P) % 2**255 | sign).to_bytes(32, "little") if y < 19 else text}:
                with pytest.raises(CannotCheck):
                    PublicKey(written)
    assert len(found) == 8
    assert OURS.public == PublicKey(OURS.public).raw


# Public keys


def written_as(form):
    key = OURS.key.public_key()
    if form == "pem":
        return key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    if form == "openssh":
        return key.public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b" somebody@example.org\n"
    return base64.b64encode(OURS.public) + b"\n"


@pytest.mark.parametrize("form", ["pem", "openssh", "base64"])
def test_a_public_key_is_read_in_each_form(form, tmp_path):
    file = tmp_path / "key.pub"
    file.write_bytes(written_as(form))
    assert read_public_key(file) == read_public_key(str(file)) == PublicKey(OURS.public)
    file.write_bytes(written_as(form) * 2)
    with pytest.raises(CannotCheck):
        read_public_key(file)


def test_the_fingerprint_is_that_of_ssh(tmp_path):
    if shutil.which("ssh-keygen") is None:
        pytest.skip("there is no ssh-keygen")
    (tmp_path / "key.pub").write_bytes(written_as("openssh"))
    done = subprocess.run(
        ["ssh-keygen", "-l", "-f", "key.pub"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[1] == PublicKey(OURS.public).fingerprint


def ec(form):
    key = generate_private_key(SECP256R1())
    if form == "public":
        return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\0" * 32,
        b"ssh-ed25519",
        b"ssh-ed25519 AAAA",
        b"ssh-rsa AAAA",
        base64.b64encode(bytes(31)),
        base64.b64encode((1).to_bytes(32, "little")),
        b"-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----",
        b"-----BEGIN PUBLIC KEY-----",
        b"\xff\xfe\x00",
        ec("public"),
        ec("private"),
        b"x" * (1 << 17),
    ],
    ids=range(13),
)
def test_what_is_no_public_key_is_refused(text, tmp_path):
    file = tmp_path / "key.pub"
    file.write_bytes(text)
    with pytest.raises(CannotCheck) as error:
        read_public_key(file)
    assert len(str(error.value)) < 200
    assert ("private key" in str(error.value)) == (b"PRIVATE" in text)


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "zero", "nul"])
def test_a_key_must_be_a_file(kind, tmp_path, release):
    path = tmp_path / "key"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    path = {"zero": Path("/dev/zero"), "nul": "a\0b"}.get(kind, path)
    with pytest.raises(CannotCheck):
        shoal.verify_signature(release, path)
    with pytest.raises(SigningError):
        SigningKey.read(path)


# Private keys


def pem(passphrase=None, form=PrivateFormat.PKCS8, key=OURS.key):
    locked = NoEncryption() if passphrase is None else BestAvailableEncryption(passphrase)
    return key.private_bytes(Encoding.PEM, form, locked)


@pytest.fixture
def key_file(tmp_path, monkeypatch):
    monkeypatch.delenv(signing.PASSPHRASE, raising=False)

    def write(text, mode=0o600):
        file = tmp_path / "key.pem"
        file.write_bytes(text)
        file.chmod(mode)
        return file

    return write


def test_a_plain_key_is_read(key_file):
    assert SigningKey.read(key_file(pem())).public == OURS.public


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620])
def test_a_plain_key_that_others_can_read_is_refused(key_file, mode):
    with pytest.raises(SigningError, match="chmod 600"):
        SigningKey.read(key_file(pem(), mode))


def test_an_encrypted_key_is_opened_with_its_passphrase(key_file, monkeypatch):
    file = key_file(pem(b"open sesame"), 0o644)
    assert SigningKey.read(file, "open sesame").public == OURS.public
    assert SigningKey.read(file, ask=lambda: "open sesame").public == OURS.public
    for wrong in ("open", "x" * 2000):
        with pytest.raises(SigningError, match="passphrase is wrong"):
            SigningKey.read(file, wrong)
    with pytest.raises(SigningError, match=signing.PASSPHRASE):
        SigningKey.read(file)
    monkeypatch.setenv(signing.PASSPHRASE, "open sesame")
    assert SigningKey.read(file).public == OURS.public


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\0" * 100,
        ec("private"),
        pem(form=PrivateFormat.OpenSSH),
        pem()[:60],
        pem().replace(b"BEGIN PRIVATE", b"BEGIN ENCRYPTED PRIVATE"),
        written_as("pem"),
        b"x" * (1 << 17),
    ],
    ids=range(8),
)
def test_what_is_no_key_is_refused(key_file, text):
    with pytest.raises(SigningError) as error:
        SigningKey.read(key_file(text), "sesame")
    # What the library says may hold parts of the file.
    assert error.value.__context__ is None or error.value.__suppress_context__


@pytest.mark.parametrize("passphrase", [None, "open sesame"])
def test_a_new_key_signs(tmp_path, passphrase):
    path = tmp_path / "mine.pem"
    fingerprint = new_key(path, passphrase)
    public = read_public_key(tmp_path / "mine.pem.pub")
    assert path.stat().st_mode & 0o777 == 0o600
    assert (b"ENCRYPTED" in path.read_bytes()) == (passphrase is not None)
    assert SigningKey.read(path, passphrase).public == public.raw
    assert fingerprint == public.fingerprint


def test_a_passphrase_that_is_too_long_is_refused(tmp_path):
    with pytest.raises(SigningError, match="1,023"):
        new_key(tmp_path / "mine.pem", "x" * 1024)
    assert list(tmp_path.iterdir()) == []


def test_a_new_key_is_its_owners_whatever_the_umask(tmp_path):
    before = os.umask(0o777)
    try:
        new_key(tmp_path / "mine.pem")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"mine.pem": 0o600, "mine.pem.pub": 0o644}


@pytest.mark.parametrize("there", ["mine.pem", "mine.pem.pub"])
def test_a_key_is_never_overwritten(tmp_path, there):
    (tmp_path / there).write_text("precious")
    with pytest.raises(OutputError, match="already"):
        new_key(tmp_path / "mine.pem")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [(there, "precious")]


# Publishing


def test_a_wrong_key_is_noticed_before_anything_is_read(tmp_path):
    with pytest.raises(SigningError):
        shoal.publish("nowhere.csv", tmp_path / NAME, "shoal", sign=tmp_path / "nowhere.pem")
    with pytest.raises(SettingsError, match="`sign`"):
        shoal.publish("nowhere.csv", "postgresql://h/d?table=t", shoal.Shoal(k=2), sign=OURS)


def test_a_signature_that_is_wrong_is_never_published(people, tmp_path, monkeypatch):
    monkeypatch.setattr(SigningKey, "sign", lambda self, manifest: {**OTHER.sign(manifest)} if self is OURS else None)
    monkeypatch.setattr(OTHER.__class__, "sign", lambda self, manifest: broken(manifest))
    with pytest.raises(NotVerified, match="signature"):
        shoal.KScale(k=2).anonymize(people).write(tmp_path / NAME, sign=OURS)
    assert list(tmp_path.iterdir()) == []


def broken(manifest):
    parts = {"public_key": base64.b64encode(OURS.public).decode(), "value": base64.b64encode(bytes(64)).decode()}
    return {**manifest, "signature": {"algorithm": "ed25519", **parts}}


def test_the_recipe_signs_what_it_publishes(one_day, tmp_path, monkeypatch):
    moved = []
    publish = Staged.publish
    monkeypatch.setattr(
        Staged, "publish", lambda staged, *more: [moved.append(manifest_of(staged.path)), publish(staged, *more)][1]
    )
    done = shoal.publish(one_day, tmp_path / NAME, shoal.KScale(k=2), sign=OURS)
    assert "signature" in done.verdict.checked
    assert moved == [manifest_of(tmp_path / NAME)]  # it was signed before it was moved into place
    assert shoal.verify_signature(tmp_path / NAME, OURS.public).ok


# Signing what is published already


@pytest.fixture
def unsigned(release):
    manifest = manifest_of(release)
    del manifest["signature"]
    put(release, manifest)
    return release


def test_a_release_can_be_signed_later(unsigned, release):
    before = unsigned.read_bytes()
    verdict = shoal.sign(unsigned, OURS)
    assert verdict.ok
    assert unsigned.read_bytes() == before
    assert manifest_of(unsigned) == OURS.sign(manifest_of(unsigned))
    assert sorted(path.name for path in unsigned.parent.iterdir()) == [NAME, BESIDE]
    with pytest.raises(AlreadyExists):
        shoal.sign(unsigned, OTHER)
    assert shoal.sign(unsigned, OTHER, overwrite=True).ok
    assert shoal.verify_signature(unsigned, OTHER.public).ok


@pytest.mark.parametrize("fault", ["file", "manifest", "name", "signature", "none", "json"])
def test_only_a_release_that_is_whole_is_signed(fault, release):
    manifest = manifest_of(release)
    if fault == "file":
        release.write_bytes(release.read_bytes() + b"\n")
    elif fault == "none":
        release.with_name(BESIDE).unlink()
    else:
        put(
            release,
            {
                "manifest": {**stripped(dict(manifest), None), "note": 1},
                "name": {**stripped(dict(manifest), None), "files": {"other.csv": manifest["files"][NAME]}},
                "signature": weaker(manifest, None),
                "json": "{",
            }[fault],
        )
    before = {path.name: path.read_bytes() for path in release.parent.iterdir()}
    with pytest.raises((NotVerified, ShoalError)):
        shoal.sign(release, OURS, overwrite=True)
    assert {path.name: path.read_bytes() for path in release.parent.iterdir()} == before


def test_a_release_that_another_run_is_using_is_not_signed(unsigned):
    """Else the data could be replaced between the check and the signature."""
    before = unsigned.with_name(BESIDE).read_bytes()
    with claimed([unsigned]), pytest.raises(OutputError, match="another run"):
        shoal.sign(unsigned, OURS)
    assert unsigned.with_name(BESIDE).read_bytes() == before
    assert sorted(path.name for path in unsigned.parent.iterdir()) == [NAME, BESIDE]


def test_an_address_is_not_signed():
    with pytest.raises(SettingsError):
        shoal.sign("s3://bucket/r.parquet", OURS)


# Without the library

WITHOUT = """
import sys
sys.modules["cryptography"] = None
from pathlib import Path
import shoal
from shoal.signing import new_key
release, key = sys.argv[1:]
for call in (
    lambda: shoal.verify_signature(release, bytes(range(32))),
    lambda: shoal.sign(release, key),
    lambda: new_key(Path("new.pem")),
):
    try:
        call()
    except shoal.ShoalError as error:
        print(type(error).__name__, "shoal-privacy[sign]" in str(error))
from shoal.seen.findings import Findings
from shoal.seen.opened import open_release
from shoal.verifier.signed import check_signature
findings = Findings()
check_signature(findings, open_release(release).manifest, None)
print(findings.found[0].code, findings.failures)
"""


def test_without_the_library_a_message_says_what_to_install(release, key_file):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, release, key_file(pem())], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == [
        "CannotCheck True",
        "SigningError True",
        "SigningError True",
        "signature-unread set()",
    ]


def test_the_library_is_imported_only_when_it_is_used():
    script = (
        "import sys, shoal, shoal.signing, shoal.pipeline, shoal.verifier\n"
        "print([m for m in sys.modules if m.startswith('cryptography')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# Kills


@pytest.mark.parametrize("step", [6, pytest.param(1, marks=pytest.mark.slow)])
def test_a_kill_at_any_moment_leaves_a_whole_release(unsigned, key_file, step):
    """The manifest is the one without the signature or the signed one; the next command removes what is left over."""
    plain = unsigned.with_name(BESIDE).read_bytes()
    signed = 0
    for touch in range(1, 100, step):
        unsigned.with_name(BESIDE).write_bytes(plain)
        command = ["sign", unsigned, "--key", key_file(pem())]
        code, _, said = forked(TOUCH, unsigned.parent, int(signal.SIGKILL), touch, 0, *command)
        if code == 0:
            break
        assert code == -signal.SIGKILL, said
        manifest = manifest_of(unsigned)
        if "signature" in manifest:
            assert shoal.verify_signature(unsigned, OURS.public).ok
        else:
            assert unsigned.with_name(BESIDE).read_bytes() == plain
        shoal.sign(unsigned, OURS, overwrite=True)
        signed += "signature" in manifest
        assert sorted(path.name for path in unsigned.parent.iterdir()) == ["key.pem", NAME, BESIDE]
    assert touch > 15
    assert signed > 0 or step > 1
