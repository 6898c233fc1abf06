"""Read a release back from its files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from shoal.claim import Claim
from shoal.errors import UnreadableFile
from shoal.folders import mend
from shoal.frame import Frame
from shoal.layouts import Boxes, Points
from shoal.release import Release

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["read_release"]


def read_release(path: str | Path) -> Release:
    """Read a release of boxes or points back from a published file; its manifest must be there and match.

    Raises UnreadableFile if the file or manifest is missing, broken, or the hash differs. Cost: linear.

    >>> read_release("nowhere.parquet")
    Traceback (most recent call last):
    shoal.errors.UnreadableFile: nowhere.parquet or its manifest is missing: not a release
    """
    path = Path(path)
    mend(path.parent)
    try:
        manifest = json.loads(path.with_name(path.name + ".manifest.json").read_text())
        with path.open("rb") as file:
            fits = manifest["files"][path.name] == hashlib.file_digest(file, "sha256").hexdigest()
        shoal, counts, seeded = manifest["shoal"], manifest["counts"], bool(manifest["seeded"])
    except OSError:
        raise UnreadableFile(f"{path.name} or its manifest is missing: not a release") from None
    except (ValueError, KeyError, TypeError):
        raise UnreadableFile(f"the manifest of {path.name} is not one of a shoal release") from None
    if not fits:
        raise UnreadableFile(f"{path.name} is not the file its manifest speaks of: it was changed after publishing")
    return _release(_table(path), shoal, counts, seeded=seeded)


def _table(path: Path) -> Any:
    try:
        if path.suffix.lower() == ".parquet":
            return pq.read_table(path)
        times = {name: pa.timestamp("ms", tz="UTC") for name in ("t_start", "t_end", "datetime")}
        return pa_csv.read_csv(path, convert_options=pa_csv.ConvertOptions(column_types=times))
    except pa.ArrowException:
        raise UnreadableFile(f"{path.name} can't be read as a release") from None


def _release(table: pa.Table, shoal: dict[str, Any], counts: dict[str, Any], *, seeded: bool = False) -> Release:
    """Rebuild a release from the published table, its `shoal` object and the manifest's counts."""
    try:
        uid = _numbers(table, "uid")
        common: dict[str, Any] = {
            "offsets": np.searchsorted(uid, np.arange(int(uid[-1]) + 2 if len(uid) else 1)),
            "frame": Frame(crs=shoal["crs"], cell_m=int(shoal["cell_m"]), slot_s=int(shoal["slot_s"])),
            "method": shoal["method"],
            "parameters": shoal["parameters"],
            "claim": Claim.from_dict(shoal["claim"]),
            "suppressed": int(counts.get("samples_suppressed", 0)),
        }
        if table.column_names == ["uid", "datetime", "lat", "lng"]:
            created = int(counts.get("samples_created", 0))
            return Release(layout=_points_of(table), **common, samples=len(table), created=created, seeded=seeded)
        samples = int(counts.get("samples_published", 0))
        return Release(**_boxes_of(table, common["frame"], common["offsets"]), **common, samples=samples)
    except (KeyError, TypeError, ValueError):
        raise UnreadableFile("the file lacks columns or metadata of a shoal release") from None


def _boxes_of(table: pa.Table, frame: Frame, offsets: NDArray[np.int64]) -> dict[str, Any]:
    """Return the boxes as inclusive granules, and how many records each one stands for."""
    edges = [_numbers(table, name) for name in ("t_start", "t_end", "x_min", "x_max", "y_min", "y_max")]
    steps = (frame.slot_s * 1000, frame.slot_s * 1000, *[frame.cell_m] * 4)
    boxes = np.stack([edge // step for edge, step in zip(edges, steps, strict=True)], axis=1)
    boxes[:, 1::2] -= 1
    multiplicity = _numbers(table, "count")[offsets[:-1]].astype(np.int32) if "count" in table.column_names else None
    return {"layout": Boxes(boxes.astype(np.int32)), "multiplicity": multiplicity}


def _points_of(table: pa.Table) -> Points:
    lng, lat = (table[name].cast(pa.float64()).to_numpy() for name in ("lng", "lat"))
    return Points(_numbers(table, "datetime"), lng, lat)


def _numbers(table: pa.Table, name: str) -> NDArray[np.int64]:
    column = table[name]
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", tz="UTC"))
    numbers: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return numbers
