"""`shoal sign`."""

from __future__ import annotations

import os
import sys
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from shoal.cli.console import show, show_json
from shoal.errors import SettingsError

if TYPE_CHECKING:
    from shoal.signing import SigningKey

__all__ = ["key_in", "sign"]


def sign(
    release: Annotated[str | None, Parameter(help="The release to sign.")] = None,
    *,
    key: Annotated[Path | None, Parameter(help="The private key, a PEM file (Ed25519).")] = None,
    new_key: Annotated[
        Path | None, Parameter(help="Make a private key and write it to this file; the public one to FILE.pub.")
    ] = None,
    overwrite: Annotated[bool, Parameter(help="Replace a signature that is there.")] = False,
    json: Annotated[bool, Parameter(help="Print the result as JSON, for programs.")] = False,
) -> int:
    """Sign a release that is published already, or make a key."""
    if new_key is not None and release is None and key is None:
        return _make(new_key, as_json=json)
    if new_key is not None or release is None or key is None:
        raise SettingsError(
            "name the RELEASE and the key: shoal sign release.parquet --key KEY; or make one: shoal sign --new-key KEY"
        )
    from shoal.signing import sign as signed

    verdict = signed(release, key_in(key), overwrite=overwrite)
    if json:
        show_json(verdict.to_dict())
    else:
        for message in verdict.messages:
            show(message)
    return 0


def key_in(path: Path) -> SigningKey:
    """Return the private key in a file; on a terminal, ask for its passphrase if there is none in the environment."""
    from shoal.signing import SigningKey

    def ask() -> str:
        try:
            return getpass(f"Passphrase of {path.name}: ")
        except EOFError:
            return ""

    return SigningKey.read(path, ask=ask if sys.stdin is not None and sys.stdin.isatty() else None)


def _make(path: Path, *, as_json: bool) -> int:
    from shoal.signing import PASSPHRASE, new_key

    passphrase = os.environ.get(PASSPHRASE)
    fingerprint = new_key(path, passphrase)
    if as_json:
        show_json({"ok": True, "key": path.name, "public_key": f"{path.name}.pub", "fingerprint": fingerprint})
        return 0
    locked = "encrypted" if passphrase else f"not encrypted: set {PASSPHRASE} to encrypt it"
    show(f"The private key is in {path.name} ({locked}). Keep it, and give it to nobody.")
    show(f"The public key is in {path.name}.pub. Publish it, with its fingerprint, where recipients trust it:")
    show(f"  {fingerprint}")
    return 0
