"""Check who signed a release: with the rest of a verdict, or alone, as a recipient without the original can."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shoal.claim import Claim
from shoal.errors import CannotCheck, SettingsError
from shoal.release import Release
from shoal.run import LOCAL, Run
from shoal.seen.findings import Findings
from shoal.seen.header import read_header
from shoal.seen.opened import open_release
from shoal.seen.signature import is_signed_by, read_public_key, require_library, signature_of
from shoal.seen.stores import brought
from shoal.verifier.integrity import check_manifest
from shoal.verifier.verdict import Verdict

if TYPE_CHECKING:
    from pathlib import Path

    from shoal.seen.opened import SeenRelease
    from shoal.seen.signature import PublicKey

__all__ = ["check_signature", "check_unchanged", "given_key", "verify_signature"]


def verify_signature(release: str | Path, public_key: str | Path | bytes, *, run: Run = LOCAL) -> Verdict:
    """Check that a release was signed with a key, and that nothing was changed since; no original is needed.

    Input: the release, and a public key: a file (PEM, a line of OpenSSH, or base64) or its 32 bytes. It must come from
    the publisher by a way that you trust, not from beside the release.
    Output: a `Verdict`; CannotCheck if the key or the release can't be read, or the extra `sign` is not installed.
    Guarantee: `ok` only if the manifest is signed with that key, and the file is the one that it describes.
    Whether the claim holds is not checked: that needs the original (`verify`). So `shown` is None.
    Cost: the file is read once, to hash it.

    >>> verify_signature("release.parquet", "nowhere.pub")
    Traceback (most recent call last):
    shoal.errors.CannotCheck: nowhere.pub: the public key can't be read (No such file or directory)
    """
    key = given_key(public_key, release)
    with brought(release, run) as at_hand:
        findings, seen = Findings(), open_release(at_hand)
        check_signature(findings, seen.manifest, key)
        claim = check_unchanged(findings, seen)
    findings.skip("claim")
    return Verdict.of(findings, claim)


def given_key(public_key: str | Path | bytes | None, release: str | Path | Release) -> PublicKey | None:
    """Return the public key that the caller gives for a release.

    Raises CannotCheck if the key, or the library to use it, is missing, and SettingsError for a release in memory.
    """
    if public_key is None:
        return None
    if isinstance(release, Release):
        raise SettingsError("`public_key` is about the manifest of a file; this release is in memory")
    key = read_public_key(public_key)
    require_library()
    return key


def check_signature(findings: Findings, manifest: Any, key: PublicKey | None) -> None:
    """Check the signature in a manifest: that it is by this key; without a key, that it is one of this manifest."""
    signature = signature_of(manifest)
    if signature is None:
        if key is not None:
            findings.fail("signature/missing")
        return
    if isinstance(signature, str):
        findings.fail("signature/algorithm" if signature == "algorithm" else "signature/malformed")
        return
    fingerprint = signature.key.fingerprint
    if key is not None and key != signature.key:
        findings.fail("signature/other-key", fingerprint=fingerprint)
        return
    try:
        right = is_signed_by(manifest, signature)
    except CannotCheck:
        findings.note("signature-unread", fingerprint=fingerprint)
        return
    if not right:
        findings.fail("signature/wrong")
    elif key is None:
        findings.note("signed-by-unknown", fingerprint=fingerprint)
    else:
        findings.ran("signature")
        findings.note("signed", fingerprint=fingerprint)


def check_unchanged(findings: Findings, seen: SeenRelease) -> Claim:
    """Check that a file is the one that its manifest describes; return what it claims."""
    file = seen.file
    if file is None:
        raise SettingsError("a release in memory has no manifest; write it first")
    stated: Any = seen.stated
    manifest = check_manifest(findings, file.path, seen.manifest, file.stated, is_csv=file.is_csv)
    header = read_header(stated)
    if manifest is not None:
        findings.fail_if(header is None, "integrity/header")
    return Claim("none", why="unreadable") if header is None else header.claim
