"""Packed text that the engine can't unpack itself."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa

__all__ = ["bring_unpacked"]


def bring_unpacked(source: str, folder: Path) -> list[Path]:
    """Unpack a file such as `events.csv.bz2`, and return the path of the text."""
    target = folder / Path(source).stem
    with pa.input_stream(source, compression="bz2") as packed, target.open("xb") as unpacked:
        shutil.copyfileobj(packed, unpacked, 1 << 20)
    return [target]
