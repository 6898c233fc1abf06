"""Object stores (`s3://`, `gs://`, `az://`) through Arrow's file systems, with errors in our words.

Credentials come from where each store's own tools look for them: the environment, `~/.aws`, a role, gcloud's or
Azure's default credentials. They are never part of an address.
"""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl

from shoal.errors import SettingsError, ShoalError, UnreadableFile
from shoal.stores.addresses import object_parts, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["CHUNK", "Bucket", "Stored", "copied_from", "opened_bucket"]

CHUNK = 1 << 22
_CONNECT_S, _REQUEST_S = 10, 60
_OPTIONS = {
    "s3": {"region", "endpoint_override", "scheme", "anonymous"},
    "gs": {"endpoint_override", "scheme", "anonymous"},
    "az": {"account_name", "blob_storage_authority", "blob_storage_scheme"},
}
# What the libraries say, which is looked at and never shown, and what it means.
_WHY_NOT = {
    "No Such|NoSuch|NO_SUCH|not found|NotFound|does not exist": "there is no such object or bucket",
    "ACCESS_DENIED|AccessDenied|HTTP status 403|INVALID_ACCESS|InvalidAccessKey|SIGNATURE|Signature|Forbidden"
    "|Unauthorized|UNAUTHENTICATED|PERMISSION_DENIED|credential": (
        "the store refused the credentials, or they have no right to do that"
    ),
    "PermanentRedirect|HTTP status 301|AuthorizationHeaderMalformed": (
        "the bucket is in another region; add ?region=… to the address"
    ),
    "NETWORK_CONNECTION|curlCode|Connection refused|resolve host|timed out|UNAVAILABLE": (
        "no server answers; check the network and the endpoint"
    ),
}


class Stored(NamedTuple):
    """An object: its path (bucket/key) and its size in bytes."""

    path: str
    size: int


class Bucket:
    """A file system of an object store, and the path that an address names in it."""

    def __init__(self, files: Any, path: str) -> None:
        self.files, self.path = files, path

    def objects(self, path: str | None = None) -> list[Stored]:
        """Return the object at a path, or all below it if there is none there, sorted by path."""
        from pyarrow.fs import FileSelector, FileType

        path = self.path if path is None else path
        info = self.files.get_file_info(path.rstrip("/"))
        if info.type == FileType.File and not path.endswith("/"):
            return [Stored(info.path, info.size)]
        if info.type == FileType.NotFound:
            return []
        found = self.files.get_file_info(FileSelector(path.rstrip("/"), recursive=True))
        return sorted(Stored(one.path, one.size) for one in found if one.type == FileType.File)


@contextmanager
def opened_bucket(address: str, *, failed: type[ShoalError] = UnreadableFile) -> Iterator[Bucket]:
    """Open an object store; raises `failed`, without any of the store's words, for all that goes wrong inside.

    Errors of files on this machine, which have a number (errno), pass.
    """
    name = shown(address)
    try:
        yield _opened(address, name)
    except FileNotFoundError:
        raise failed(f"{name}: there is no such object or bucket") from None
    except OSError as error:
        if error.errno:
            raise
        said = str(error)
        why = next((why for words, why in _WHY_NOT.items() if re.search(words, said)), None)
        raise failed(f"{name}: {why or 'the object store reported an error'}") from None


def _opened(address: str, name: str) -> Bucket:
    from pyarrow import fs

    scheme, path, text = object_parts(address)
    options: dict[str, Any] = dict(parse_qsl(text))
    if unknown := set(options) - _OPTIONS[scheme]:
        words = ", ".join(sorted(_OPTIONS[scheme]))
        raise SettingsError(f"{name}: the address has {len(unknown)} unknown options; there are: {words}")
    bucket = path.partition("/")[0]
    if "@" in bucket or ":" in bucket:
        raise SettingsError(
            f"{name}: an address of objects is {scheme}://bucket/key, without credentials; they are taken from the "
            "environment, as the store's own tools do"
        )
    kind = getattr(fs, {"s3": "S3FileSystem", "gs": "GcsFileSystem", "az": "AzureFileSystem"}[scheme], None)
    if kind is None:
        raise SettingsError(f"{name}: this build of pyarrow can't open {scheme}:// addresses; install a wheel of it")
    if "anonymous" in options:
        options["anonymous"] = options["anonymous"].lower() in {"1", "true", "yes"}
    try:
        return Bucket(kind(**_MORE[scheme](bucket, options)), path)
    except (ValueError, NotImplementedError):
        raise SettingsError(f"{name}: the options of the address make no sense together") from None


def _for_s3(bucket: str, options: dict[str, Any]) -> dict[str, Any]:
    from pyarrow import fs

    endpoint = options.get("endpoint_override") or next(
        (os.environ[name] for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL") if os.environ.get(name)), None
    )
    region = options.get("region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region is None:
        region = "us-east-1" if endpoint else fs.resolve_s3_region(bucket)
    if endpoint:
        options = {**options, "endpoint_override": endpoint}
    return {**options, "region": region, "connect_timeout": _CONNECT_S, "request_timeout": _REQUEST_S}


def _for_gs(bucket: str, options: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001  names have no region
    return {**options, "retry_time_limit": timedelta(seconds=_REQUEST_S)}


def _for_az(bucket: str, options: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    account = options.get("account_name") or os.environ.get("AZURE_STORAGE_ACCOUNT")
    if not account:
        raise SettingsError("say the storage account: ?account_name=… in the address, or AZURE_STORAGE_ACCOUNT")
    secrets = {"account_key": "AZURE_STORAGE_KEY", "sas_token": "AZURE_STORAGE_SAS_TOKEN"}
    given = {name: os.environ[one] for name, one in secrets.items() if os.environ.get(one)}
    return {**options, **given, "account_name": account}


_MORE = {"s3": _for_s3, "gs": _for_gs, "az": _for_az}


def copied_from(bucket: Bucket, path: str, target: Path, advance: Callable[[int], object] = lambda _: None) -> None:
    """Copy an object into a new file; `advance` is told of bytes."""
    with bucket.files.open_input_stream(path) as remote, target.open("xb") as file:
        while part := remote.read(CHUNK):
            file.write(part)
            advance(len(part))
