"""Check for leaks: the file holds nothing but its boxes, no stray column, metadata, value or order."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.regular import open_regular

if TYPE_CHECKING:
    from shoal.seen.file import File
    from shoal.seen.findings import Findings
    from shoal.seen.point_scan import PointScan
    from shoal.seen.scan import Scan

__all__ = ["check_bytes", "check_metadata", "check_point_values", "check_values"]

_ALLOWED = {b"shoal", b"geo", b"ARROW:schema"}
_WRITER = re.compile(r"parquet-cpp-arrow version \d{1,3}(\.\d{1,3}){2}(-SNAPSHOT)?")
_MAGIC, _TAIL = 4, 8
_BLOCK = 1 << 24
_ODD = ("fractions", "off", "empty", "wild", "times", "places")


def check_metadata(findings: Findings, file: File, *, own: bool) -> None:
    """Check that the footer, the schema inside it and the columns carry only the allowed metadata.

    `own` says that the file states to be a shoal release: then its bytes are checked as well (those of text by
    `check_bytes`). The form and metadata of another tool's file are not checked, and the verdict says so.
    """
    findings.ran("leaks")
    if not own:
        findings.skip("form")
    if file.is_csv or not own:
        return
    _check_layout(findings, file)
    stray = len(set(file.footer) - _ALLOWED)
    findings.fail_if(stray, "leaks/metadata-keys")
    schemas = [file.schema]
    if b"ARROW:schema" in file.footer:
        inner = _inner_schema(file.footer[b"ARROW:schema"])
        same = inner is not None and inner.equals(file.schema)
        findings.fail_if(not same, "leaks/inner-schema")
        schemas += [] if inner is None else [inner]
    for schema in schemas:
        inside = schema.metadata or {}
        differs = any(key not in _ALLOWED or file.footer.get(key) != value for key, value in inside.items())
        findings.fail_if(differs, "leaks/schema-metadata")
        noted = sum(bool(field.metadata) for field in schema)
        findings.fail_if(noted, "leaks/column-metadata")
    geo = b"geo" in file.footer
    findings.fail_if(geo != ("geometry" in file.names), "leaks/geometry-alone")


def _inner_schema(text: bytes) -> pa.Schema | None:
    """Read the schema that Arrow puts into a footer; None if it is not one, or not the only thing there."""
    try:
        source = pa.BufferReader(base64.b64decode(text, validate=True))
        schema = pa.ipc.read_schema(source)
    except (ValueError, OSError, pa.ArrowException):
        return None
    return schema if source.tell() == source.size() else None


def _check_layout(findings: Findings, file: File) -> None:
    """Check that a Parquet file has no byte besides its values: no gap that could carry something."""
    writer = _WRITER.fullmatch(file.writer)
    findings.fail_if(writer is None, "leaks/writer")
    findings.fail_if(not _is_tiled(file), "leaks/stray-bytes")


def check_bytes(findings: Findings, values: int, file: File) -> None:
    """Check that a CSV file has no byte besides its values: no quote or blank that could carry something."""
    size = len(",".join(file.names).encode()) + 1 + values
    with open_regular(file.path) as lines:
        plain = all(b"\r" not in block for block in iter(lambda: lines.read(_BLOCK), b""))
    findings.fail_if(file.path.stat().st_size != size or not plain, "leaks/stray-bytes")


def _is_tiled(file: File) -> bool:
    """Return whether column chunks, as Arrow writes them for a release, fill a Parquet file up to its footer."""
    parquet: Any = file.parquet
    chunks = file.chunks()
    # Arrow notes the offset 0 for a page that is not there.
    starts = [min((at for at in (c.dictionary_page_offset, c.data_page_offset) if at), default=0) for c in chunks]
    ends = [start + chunk.total_compressed_size for start, chunk in zip(starts, chunks, strict=True)]
    spans = sorted(zip(starts, ends, strict=True))
    footer = file.path.stat().st_size - _TAIL - parquet.serialized_size
    bare = not any(chunk.file_path or getattr(chunk, "metadata", None) for chunk in chunks)
    return bare and [_MAGIC, *(end for _, end in spans)] == [*(start for start, _ in spans), footer]


def check_values(findings: Findings, scan: Scan, k: int, file: File, *, claim: str, own: bool) -> None:
    """Check numbering, order, grid and derived columns, from the counts of a pass through all values.

    Another tool (not `own`) may begin its numbers anywhere.
    """
    odd, numbers = scan.odd, scan.records.uids
    first = 0 if own or not len(numbers) else int(numbers[0])
    dense = np.array_equal(numbers, np.arange(first, first + len(numbers)))
    findings.fail_if(not dense, "leaks/numbering")
    findings.fail_if(odd["unsorted"], "leaks/unsorted")
    for kind in _ODD:
        findings.fail_if(odd[kind], f"leaks/{kind}")
    if scan.count is not None:
        findings.fail_if(claim != "k-anonymity", "leaks/count-column")
        thin = int((scan.count < k).sum())
        findings.fail_if(thin, "leaks/small-count", k=k)
        findings.fail_if(odd["uneven"], "leaks/uneven-count")
    if scan.polygons is not None:
        scan.polygons.report(findings, file.footer.get(b"geo"))


def check_point_values(findings: Findings, scan: PointScan, file: File) -> None:
    """Check numbering, order and values, from the counts of a pass through all points."""
    dense = np.array_equal(scan.uids, np.arange(len(scan)))
    findings.fail_if(not dense, "leaks/numbering")
    findings.fail_if(scan.odd["unsorted"], "leaks/unsorted")
    findings.fail_if(scan.odd["wild"], "leaks/wild-points")
    findings.fail_if(scan.odd["fine"], "leaks/fine-points")
    if scan.shapes is not None:
        scan.shapes.report(findings, file.footer.get(b"geo"))
