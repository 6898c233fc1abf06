"""Sign a release that is published already, for keys that lie on another machine than the data; make such keys."""

from __future__ import annotations

from pathlib import Path

from shoal.coredumps import without_core_dumps
from shoal.errors import AlreadyExists, NotVerified, SettingsError
from shoal.folders import claimed
from shoal.publishing.manifest import manifest_path
from shoal.publishing.signing import PASSPHRASE, SigningKey, make_key, replace_manifest
from shoal.seen.findings import Findings
from shoal.seen.opened import open_release
from shoal.seen.signature import PublicKey
from shoal.stores.addresses import address_of
from shoal.verifier.signed import check_signature, check_unchanged
from shoal.verifier.verdict import Verdict

__all__ = ["PASSPHRASE", "SigningKey", "new_key", "sign"]


@without_core_dumps()
def sign(release: str | Path, key: str | Path | SigningKey, *, overwrite: bool = False) -> Verdict:
    """Sign the manifest of a release file, and replace it by the signed one; no original is needed.

    Input: a release file with its manifest beside it, and the key: a PEM file, or a `SigningKey`. `overwrite` replaces
    a signature that is there.
    Output: the verdict on the signed release, as `verify_signature` gives it.
    Guarantee: the data file stays as it is. If the function raises, the old manifest is in place. Raises NotVerified if
    the file is not the one that its manifest describes, AlreadyExists if it is signed already, CannotCheck,
    OutputError or SigningError.
    Cost: the file is read once, to hash it.

    >>> sign("release.parquet", "nowhere.pem")
    Traceback (most recent call last):
    shoal.errors.SigningError: nowhere.pem: the key can't be read (No such file or directory)
    """
    key = key if isinstance(key, SigningKey) else SigningKey.read(key)
    if address_of(release) is not None:
        raise SettingsError("only the manifest of a file can be signed; name a file")
    path = Path(release)
    with claimed([path, manifest_path(path)]):
        before, findings, seen = Findings(), Findings(), open_release(path)
        check_signature(before, seen.manifest, None)
        claim = check_unchanged(findings, seen)
        if before.failures or findings.failures or not findings.checked:
            raise NotVerified(f"{path.name} was not signed: {' '.join(before.problems + findings.messages)}")
        if "signature" in seen.manifest and not overwrite:
            raise AlreadyExists(f"{path.name} is signed already; give `overwrite` to replace the signature")
        signed = key.sign(seen.manifest)
        check_signature(findings, signed, PublicKey(key.public))
        if findings.failures:
            raise NotVerified(f"{path.name} was not signed: {' '.join(findings.problems)}")
        replace_manifest(path, signed)
    findings.skip("claim")
    return Verdict.of(findings, claim)


def new_key(path: Path, passphrase: str | None = None) -> str:
    """Write a new private key, encrypted if there is a passphrase, and `PATH.pub` beside it; return its fingerprint.

    Raises OutputError if one of the two files is there already or can't be written, SigningError.
    """
    return PublicKey(make_key(path, passphrase).public).fingerprint
