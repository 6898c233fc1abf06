"""GPX: the track points of GPS loggers and sports apps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn
from xml.parsers import expat

import pyarrow as pa

from shoal.errors import TooLarge, UnreadableFile
from shoal.reading.forms import Brought
from shoal.reading.forms.rows import RowWriter
from shoal.reading.limits import MAX_DEPTH, MAX_RECORD, MAX_TEXT

if TYPE_CHECKING:
    from pathlib import Path
    from typing import BinaryIO

__all__ = ["bring_gpx"]

_CHUNK = 1 << 18
_SCHEMA = pa.schema([(name, pa.string()) for name in ("time", "lat", "lon", "track")])


def bring_gpx(path: Path, folder: Path, name: str) -> list[Brought]:
    """Write the track points of a GPX file as rows: time, lat, lon, and the name of the track.

    The file does not say whose it is. Raises UnreadableFile for what is no XML, and for XML with a document type,
    which GPX does not have and which could name other files or unfold without end.
    """
    target = folder / "rows.parquet"
    with path.open("rb") as file, RowWriter(target, _SCHEMA) as rows:
        _Reader(name, rows).read(file)
    return [Brought(target)]


class _Reader:
    """Follows the elements of a file and writes a row at the end of each track point."""

    def __init__(self, name: str, rows: RowWriter) -> None:
        self.name, self.rows = name, rows
        self.inside: list[str] = []
        self.text: list[str] = []
        self.kept = 0
        self.track: str | None = None
        self.point: tuple[str | None, str | None] = (None, None)
        self.time: str | None = None

    def read(self, file: BinaryIO) -> None:
        """Read a file to its end."""
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        try:
            given = 0
            while chunk := file.read(_CHUNK):
                parser.Parse(chunk, False)  # noqa: FBT003
                given += len(chunk)
                if given - parser.CurrentByteIndex > MAX_RECORD:
                    raise TooLarge(f"{self.name}: a tag has more than {MAX_RECORD >> 20} MB; export it again")
            parser.Parse(b"", True)  # noqa: FBT003
        except (expat.ExpatError, ValueError, LookupError):
            raise UnreadableFile(f"{self.name}: not whole, valid XML (cut off or damaged); export it again") from None

    def _refuse(self, *_: object) -> NoReturn:
        raise UnreadableFile(f"{self.name}: has a document type (DOCTYPE), which GPX never has; export it again")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        if not self.inside and tag != "gpx":
            raise UnreadableFile(f"{self.name}: not GPX: it is XML of another kind")
        self.inside.append(tag)
        if len(self.inside) > MAX_DEPTH:
            raise TooLarge(f"{self.name}: more than {MAX_DEPTH} elements inside each other; export it again")
        self.text.clear()
        self.kept = 0
        if tag == "trk":
            self.track = None
        elif tag == "trkpt":
            lat, lon = ((attributes.get(axis) or "")[:MAX_TEXT] or None for axis in ("lat", "lon"))
            self.point, self.time = (lat, lon), None

    def _characters(self, text: str) -> None:
        if self.kept < MAX_TEXT:
            self.text.append(text)
            self.kept += len(text)

    def _end(self, name: str) -> None:
        del name
        here, tag = self.inside[-2:-1], self.inside.pop()
        if here == ["trk"] and tag == "name":
            self.track = "".join(self.text).strip() or None
        elif here == ["trkpt"] and tag == "time":
            self.time = "".join(self.text).strip() or None
        elif tag == "trkpt":
            self.rows.add((self.time, *self.point, self.track))
        self.text.clear()
