"""Leaks: the file says nothing beyond its boxes — no stray column, metadata, value or order."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.verifier.arrays import distinct
from shoal.verifier.geometry import check_geometry

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.verifier.grid import Grid
    from shoal.verifier.published import Columns, File
    from shoal.verifier.verdict import Findings

__all__ = ["check_metadata", "check_values"]

_ALLOWED = {b"shoal", b"geo", b"ARROW:schema"}
_WRITER = re.compile(r"parquet-cpp-arrow version \d{1,3}(\.\d{1,3}){2}(-SNAPSHOT)?")
_MAGIC, _TAIL = 4, 8


def check_metadata(findings: Findings, file: File, *, own: bool) -> None:
    """Check that the footer, the schema inside it and the columns carry only the allowed metadata.

    `own` says that the file states to be a shoal release: then its bytes are accounted for as well.
    """
    findings.ran("leaks")
    if own:
        _check_bytes(findings, file)
    if file.is_csv:
        return
    stray = len(set(file.footer) - _ALLOWED)
    findings.fail_if(stray, "leaks", f"{stray} metadata keys are not allowed in a release.")
    schemas = [file.table.schema]
    if b"ARROW:schema" in file.footer:
        try:
            schemas.append(pa.ipc.read_schema(pa.py_buffer(base64.b64decode(file.footer[b"ARROW:schema"]))))
        except (binascii.Error, ValueError, OSError, pa.ArrowException):
            findings.fail("leaks", "The schema inside the file's footer can't be read.")
    for schema in schemas:
        inside = schema.metadata or {}
        differs = any(key not in _ALLOWED or file.footer.get(key) != value for key, value in inside.items())
        findings.fail_if(differs, "leaks", "The file's schema carries metadata that is not allowed in a release.")
        noted = sum(bool(field.metadata) for field in schema)
        findings.fail_if(noted, "leaks", f"{noted} columns carry metadata of their own.")
    geo = b"geo" in file.footer
    findings.fail_if(
        geo != ("geometry" in file.table.column_names), "leaks", "Geometry and its metadata do not come together."
    )


def _check_bytes(findings: Findings, file: File) -> None:
    """Check that the file has no byte besides its values: no gap, quote or blank that could carry something."""
    if file.parquet is None:
        names, columns = file.table.column_names, file.table.columns
        size = len(",".join(names).encode()) + 1 + len(names) * len(file.table)
        size += sum(pc.sum(pc.binary_length(column)).as_py() or 0 for column in columns)
        stray = file.path.stat().st_size != size
    else:
        writer = _WRITER.fullmatch(file.parquet.created_by or "")
        findings.fail_if(writer is None, "leaks", "The file does not say that it was written by Arrow, and no more.")
        stray = not _is_tiled(file)
    findings.fail_if(stray, "leaks", "The file holds bytes that are no part of its columns.")


def _is_tiled(file: File) -> bool:
    """Say whether column chunks, as Arrow writes them for a release, fill a Parquet file up to its footer."""
    parquet: Any = file.parquet
    groups = [parquet.row_group(n) for n in range(parquet.num_row_groups)]
    chunks = [group.column(n) for group in groups for n in range(group.num_columns)]
    # Arrow notes the offset 0 for a page that is not there.
    starts = [min(at for at in (c.dictionary_page_offset, c.data_page_offset) if at) for c in chunks]
    ends = [start + chunk.total_compressed_size for start, chunk in zip(starts, chunks, strict=True)]
    spans = sorted(zip(starts, ends, strict=True))
    footer = file.path.stat().st_size - _TAIL - parquet.serialized_size
    bare = not any(chunk.file_path or getattr(chunk, "metadata", None) for chunk in chunks)
    return bare and [_MAGIC, *(end for _, end in spans)] == [*(start for start, _ in spans), footer]


def check_values(findings: Findings, columns: Columns, grid: Grid, k: int, file: File, *, claim: str) -> None:
    """Check numbering, order, grid and derived columns, value by value; cost linear in rows."""
    findings.ran("leaks")
    uid, start, end = columns["uid"], columns["t_start"], columns["t_end"]
    numbers = distinct(uid)
    dense = np.array_equal(numbers, np.arange(len(numbers)))
    findings.fail_if(not dense, "leaks", "Records are not numbered 0, 1, 2 … without gaps.")
    ahead = (np.diff(uid) > 0) | ((np.diff(uid) == 0) & (np.diff(start) >= 0))
    findings.fail_if(not ahead.all(), "leaks", "Rows are not sorted by record and time.")
    fractions = _count((start % 1000 != 0) | (end % 1000 != 0))
    findings.fail_if(fractions, "leaks", f"{fractions:,} boxes do not start and end on whole seconds.")
    _check_grid(findings, columns, grid)
    _check_derived(findings, columns, grid)
    if "count" in columns:
        findings.fail_if(claim != "k-anonymity", "leaks", "Only identical groups (k-anonymity) may have a count.")
        thin = _count(columns["count"] < k)
        findings.fail_if(thin, "leaks", f"{thin:,} rows have a count below {k}.")
        uneven = _count((np.diff(columns["count"]) != 0) & (np.diff(uid) == 0))
        findings.fail_if(uneven, "leaks", f"{uneven:,} rows have another count than the rest of their record.")
    if columns.geometry is not None:
        check_geometry(findings, columns, grid, file.footer.get(b"geo"))


def _check_grid(findings: Findings, columns: Columns, grid: Grid) -> None:
    slot_ms = grid.slot_s * 1000
    off = (columns["t_start"] % slot_ms != 0) | (columns["t_end"] % slot_ms != 0)
    empty = columns["t_end"] <= columns["t_start"]
    for axis in ("x", "y"):
        low, high = columns[f"{axis}_min"], columns[f"{axis}_max"]
        off |= (low % grid.cell_m != 0) | (high % grid.cell_m != 0)
        empty |= high <= low
    off &= columns.whole
    findings.fail_if(off.any(), "leaks", f"{_count(off):,} boxes have edges off the declared grid.")
    empty &= columns.whole
    findings.fail_if(empty.any(), "leaks", f"{_count(empty):,} boxes are empty.")
    wild = _count(~columns.whole)
    findings.fail_if(wild, "leaks", f"{wild:,} boxes have values that are missing or out of range.")


def _check_derived(findings: Findings, columns: Columns, grid: Grid) -> None:
    if "datetime" in columns:
        middle = columns["t_start"] + (columns["t_end"] - columns["t_start"]) // 2
        wrong = _count((columns["datetime"] != middle) & columns.whole)
        findings.fail_if(wrong, "leaks", f"{wrong:,} times are not the middle of their box.")
    if "lat" in columns and "lng" in columns and grid.crs is not None:
        east = (columns["x_min"].astype(np.float64) + columns["x_max"]) / 2
        north = (columns["y_min"].astype(np.float64) + columns["y_max"]) / 2
        lng, lat = grid.degrees(east, north)
        same = _same_bits(columns["lng"], lng) & _same_bits(columns["lat"], lat)
        wrong = _count(~same & columns.whole)
        findings.fail_if(wrong, "leaks", f"{wrong:,} places are not the middle of their box.")


def _same_bits(left: NDArray[Any], right: NDArray[Any]) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = np.asarray(left, np.float64).view(np.int64) == np.asarray(right, np.float64).view(
        np.int64
    )
    return same


def _count(mask: NDArray[np.bool_]) -> int:
    return int(mask.sum())
