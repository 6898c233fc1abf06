"""The signature of a manifest, as an outsider checks it, and the public keys to check it with.

What is signed is the manifest without its signature: a line that says what it is, then JSON with sorted keys and
without blanks. Signatures are Ed25519 (RFC 8032). Only the check itself needs the extra `sign`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import CannotCheck
from shoal.regular import read_regular

__all__ = ["ALGORITHM", "PublicKey", "Signature", "is_signed_by", "read_public_key", "require_library", "signature_of"]

ALGORITHM = "ed25519"
_TITLE = b"shoal manifest v1\n"
_KEY, _VALUE = 32, 64  # bytes
_MOST = 1 << 16  # bytes of a file with a public key
_PEM = b"-----BEGIN PUBLIC KEY-----", b"-----END PUBLIC KEY-----"
_DER = bytes.fromhex("302a300506032b6570032100")  # SubjectPublicKeyInfo of Ed25519, up to the key
_SSH = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"
_MISSING = 'to check a signature, pip install "shoal-privacy[sign]"'
_FORMS = "give a file with one Ed25519 public key: PEM, a line of OpenSSH, or 32 bytes in base64"
_PRIME = 2**255 - 19
# Of the points that eight times added give zero, the y: with such a key, anybody can sign.
_EIGHTH = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_SMALL = {0, 1, _PRIME - 1, _EIGHTH, _PRIME - _EIGHTH}


@dataclass(frozen=True)
class PublicKey:
    """An Ed25519 public key: 32 bytes. Raises CannotCheck for a key with which anybody could sign.

    >>> PublicKey(bytes(range(32))).fingerprint
    'SHA256:ZkAslGjFiUHdGf/WUL8rQvkib4PTvQatUV0OUQSncCA'
    """

    raw: bytes

    def __post_init__(self) -> None:
        if not _is_sound(self.raw):
            raise CannotCheck(f"this is no key that anything can be checked with; {_FORMS}")

    @property
    def fingerprint(self) -> str:
        """A short name of the key, the one that `ssh-keygen -l` prints."""
        digest = hashlib.sha256(_SSH + self.raw).digest()
        return f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"


@dataclass(frozen=True)
class Signature:
    """A signature whose form is right: the key that it names, and its 64 bytes."""

    key: PublicKey
    value: bytes


def read_public_key(source: str | Path | bytes | PublicKey) -> PublicKey:
    """Return a public key; `source` is a file (PEM, OpenSSH or base64), the 32 bytes of the key, or a key.

    Raises CannotCheck if there is no such file, or it holds anything but one Ed25519 public key.
    """
    if isinstance(source, PublicKey):
        return source
    if isinstance(source, bytes):
        return PublicKey(source)
    path = Path(source)
    try:
        text = read_regular(path, _MOST)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", "no file")
        raise CannotCheck(f"{path.name}: the public key can't be read ({why})") from None
    if b"PRIVATE KEY" in text:
        raise CannotCheck(
            "this is a private key, which nobody else may have; its public key is made by: openssl pkey -in KEY -pubout"
        )
    return PublicKey(_raw_key(text.strip()))


def signature_of(manifest: Any) -> Signature | str | None:
    """Return the signature of a manifest, None if it has none; else what is wrong: `malformed` or `algorithm`.

    >>> signature_of({}), signature_of({"signature": {}}), signature_of({"signature": {"algorithm": "none"}})
    (None, 'malformed', 'algorithm')
    """
    if not isinstance(manifest, dict) or "signature" not in manifest:
        return None
    stated = manifest["signature"]
    if not isinstance(stated, dict) or not isinstance(stated.get("algorithm"), str):
        return "malformed"
    if stated["algorithm"] != ALGORITHM:
        return "algorithm"
    if set(stated) != {"algorithm", "public_key", "value"}:
        return "malformed"
    key, value = _decoded(stated["public_key"]), _decoded(stated["value"])
    if not _is_sound(key) or len(value) != _VALUE:
        return "malformed"
    return Signature(PublicKey(key), value)


def is_signed_by(manifest: dict[str, Any], signature: Signature) -> bool:
    """Return whether a signature is one of this manifest by the key that it names; CannotCheck without `sign`."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        raise CannotCheck(_MISSING) from None
    try:
        Ed25519PublicKey.from_public_bytes(signature.key.raw).verify(signature.value, _signed_bytes(manifest))
    except (InvalidSignature, ValueError, RecursionError):
        return False
    return True


def require_library() -> None:
    """Raise CannotCheck, which says how to install it, if the library that checks signatures is missing."""
    if importlib.util.find_spec("cryptography") is None:
        raise CannotCheck(_MISSING)


def _signed_bytes(manifest: dict[str, Any]) -> bytes:
    unsigned = {name: value for name, value in manifest.items() if name != "signature"}
    return _TITLE + json.dumps(unsigned, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _decoded(text: Any) -> bytes:
    """Return what base64 says, if it is written in the one way there is; else nothing."""
    try:
        plain = base64.b64decode(text, validate=True)
    except (TypeError, ValueError, binascii.Error):
        return b""
    written = text if isinstance(text, bytes) else text.encode()
    return plain if base64.b64encode(plain) == written else b""


def _raw_key(text: bytes) -> bytes:
    """Return the 32 bytes of a key in a file; nothing if the file holds something else."""
    if text.startswith(_PEM[0]) and text.endswith(_PEM[1]):
        whole = _decoded(b"".join(text[len(_PEM[0]) : -len(_PEM[1])].split()))
        return whole.removeprefix(_DER) if whole.startswith(_DER) else b""
    if text.startswith(b"ssh-ed25519 "):
        whole = _decoded(text.split()[1]) if len(text.splitlines()) == 1 else b""
        return whole.removeprefix(_SSH) if whole.startswith(_SSH) else b""
    return _decoded(text)


def _is_sound(key: bytes) -> bool:
    """Return whether bytes can be a key: the right length, a y below the prime, and no point of small order."""
    y = int.from_bytes(key, "little") & (2**255 - 1)
    return len(key) == _KEY and y < _PRIME and y not in _SMALL
