"""Sign manifests, so that a recipient knows who published and that nothing was changed since (Ed25519, RFC 8032).

A signature lies inside the manifest. It is about everything else in there; the manifest names the SHA-256 of the data
file. The library that signs comes with the extra `sign`.
"""

from __future__ import annotations

import base64
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shoal.errors import OutputError, SigningError
from shoal.folders import private_folder
from shoal.publishing.files import PUBLIC, write_json
from shoal.publishing.manifest import manifest_path
from shoal.regular import open_regular
from shoal.switch import switch

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

__all__ = ["PASSPHRASE", "SigningKey", "make_key", "replace_manifest", "signing_key"]

_MOST = 1 << 16  # bytes of a key file
_LONGEST = 1023  # bytes of a passphrase that the library takes

PASSPHRASE = "SHOAL_SIGN_PASSPHRASE"  # noqa: S105  the variable that holds it
_TITLE = b"shoal manifest v1\n"
_HOW = "make one: openssl genpkey -algorithm ed25519 -out KEY"
_MISSING = 'to sign a release, pip install "shoal-privacy[sign]"'


@dataclass(frozen=True)
class SigningKey:
    """A private key that signs manifests: `SigningKey.read` opens a file. It is never printed."""

    key: Ed25519PrivateKey = field(repr=False)

    @classmethod
    def read(
        cls, path: str | Path, passphrase: str | None = None, *, ask: Callable[[], str] | None = None
    ) -> SigningKey:
        """Return the key in a PEM file.

        If it is encrypted, the passphrase is the given one, else that in the variable SHOAL_SIGN_PASSPHRASE, else what
        `ask` returns. Raises SigningError if there is no such file, it holds no Ed25519 private key, the passphrase is
        wrong, or the key is not encrypted and others can read it.
        """
        path = Path(path)
        text, shared = _read(path)
        try:
            from cryptography.exceptions import UnsupportedAlgorithm
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
            from cryptography.hazmat.primitives.serialization import load_pem_private_key
        except ImportError:
            raise SigningError(_MISSING) from None
        encrypted = b"BEGIN ENCRYPTED PRIVATE KEY" in text
        if not encrypted and b"BEGIN PRIVATE KEY" not in text:
            raise SigningError(f"{path.name} is no private key in PEM (PKCS 8); {_HOW}")
        if not encrypted and shared:
            raise SigningError(f"others can read the key in {path.name}: chmod 600 it, or encrypt it")
        secret = _passphrase(passphrase, ask, path) if encrypted else None
        try:
            key = load_pem_private_key(text, secret)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            why = "the passphrase is wrong, or the file is damaged" if encrypted else "the file is damaged"
            raise SigningError(f"the key in {path.name} can't be opened: {why}") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise SigningError(f"the key in {path.name} is not an Ed25519 key; {_HOW}")
        return cls(key)

    @property
    def public(self) -> bytes:
        """The 32 bytes of the public key."""
        return self.key.public_key().public_bytes_raw()

    def sign(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Return a manifest with a signature; one that it had before is left out.

        Guarantee: the same manifest and key give the same bytes, whatever the order of the manifest's keys.
        """
        unsigned = {name: value for name, value in manifest.items() if name != "signature"}
        text = json.dumps(unsigned, sort_keys=True, separators=(",", ":"), default=str, allow_nan=False)
        signature = {
            "algorithm": "ed25519",
            "public_key": base64.b64encode(self.public).decode(),
            "value": base64.b64encode(self.key.sign(_TITLE + text.encode())).decode(),
        }
        return {**unsigned, "signature": signature}


def signing_key(given: str | Path | SigningKey | None) -> SigningKey | None:
    """Return the key that `sign` means: one that is at hand, or in a file."""
    return given if given is None or isinstance(given, SigningKey) else SigningKey.read(given)


def make_key(path: Path, passphrase: str | None = None) -> SigningKey:
    """Write a new private key (mode 0600, encrypted with the passphrase if there is one) and `PATH.pub` beside it.

    Raises OutputError if one of the two files is there already, or can't be written, and SigningError.
    """
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    except ImportError:
        raise SigningError(_MISSING) from None
    key = Ed25519PrivateKey.generate()
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    locked: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if passphrase and len(os.fsencode(passphrase)) > _LONGEST:
        raise SigningError(f"a passphrase has at most {_LONGEST:,} bytes")
    if passphrase:
        locked = serialization.BestAvailableEncryption(os.fsencode(passphrase))
    public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
    private = key.private_bytes(pem, pkcs8, locked)
    _write_new(path.with_name(f"{path.name}.pub"), public, 0o644)
    try:
        _write_new(path, private, 0o600)
    except OutputError:
        path.with_name(f"{path.name}.pub").unlink()
        raise
    return SigningKey(key)


def _write_new(path: Path, text: bytes, mode: int) -> None:
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            os.fchmod(file.fileno(), mode)  # whatever the umask
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise OutputError(f"{path.name} is there already; a key is never overwritten") from None
    except OSError as error:
        raise OutputError(f"{path.name} can't be written ({error.strerror or 'I/O error'})") from None


def replace_manifest(path: Path, manifest: dict[str, Any]) -> None:
    """Put a manifest beside a published data file, in place of the one that is there; raises OutputError.

    The caller has claimed both files (`shoal.folders.claimed`).
    """
    beside = manifest_path(path)
    with private_folder(path.parent) as folder:
        write_json(folder / beside.name, manifest, PUBLIC)
        switch([(folder / beside.name, beside)], overwrite=True)


def _read(path: Path) -> tuple[bytes, bool]:
    """Return the content of a key file, and whether others may do anything with it."""
    try:
        with open_regular(path) as file:
            text, shared = file.read(_MOST + 1), bool(os.fstat(file.fileno()).st_mode & 0o077)
    except (OSError, ValueError) as error:
        raise SigningError(f"{path.name}: the key can't be read ({getattr(error, 'strerror', 'no file')})") from None
    if len(text) > _MOST:
        raise SigningError(f"{path.name} is too large for a key; is it another file?")
    return text, shared


def _passphrase(given: str | None, ask: Callable[[], str] | None, path: Path) -> bytes:
    """Return the passphrase of a key, from where there is one."""
    found = given if given is not None else os.environ.get(PASSPHRASE)
    if found is None and ask is not None:
        found = ask()
    if not found:
        raise SigningError(f"the key in {path.name} is encrypted: set {PASSPHRASE} to its passphrase")
    return os.fsencode(found)
