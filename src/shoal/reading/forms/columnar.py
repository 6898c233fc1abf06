"""Arrow files: .arrow, .feather and .ipc become Parquet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from shoal.errors import UnreadableFile
from shoal.reading.forms import Brought
from shoal.reading.limits import check_rows, check_unpacked, check_width

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["bring_columnar"]


def bring_columnar(path: Path, folder: Path, name: str) -> list[Brought]:
    """Write an Arrow file or stream as Parquet, batch by batch, and return its path."""
    target, size = folder / "rows.parquet", path.stat().st_size
    try:
        with pa.OSFile(str(path)) as file:
            is_file = file.read(6) == b"ARROW1"
            file.seek(0)
            reader = pa.ipc.open_file(file) if is_file else pa.ipc.open_stream(file)
            check_width(len(reader.schema), name)
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches)) if is_file else reader
            with pq.ParquetWriter(target, reader.schema, compression="lz4") as writer:
                rows = unpacked = 0
                for batch in batches:
                    rows, unpacked = rows + batch.num_rows, unpacked + batch.nbytes
                    check_rows(rows, size, name, None)
                    check_unpacked(unpacked, size, name)
                    batch.validate(full=True)
                    writer.write_batch(batch)
    except (pa.ArrowException, OSError, ValueError):
        raise UnreadableFile(f"{name}: not a whole Arrow file (Feather version 2); write it again") from None
    return [Brought(target)]
