"""Files in files: gzip, zstd, bzip2, xz and zip around texts, and sheets of Excel, damaged inside or outside."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from typing import TYPE_CHECKING

import pyarrow as pa

from tests.fuzz.case import CANARY, Case, Kind
from tests.fuzz.mutate import TEXTS, any_bytes
from tests.fuzz.tables import options, read_case, row
from tests.fuzz.texts import written

if TYPE_CHECKING:
    from random import Random

_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_PACKAGE = 'xmlns="http://schemas.openxmlformats.org/package/2006/{}"'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_SHEET = f"<worksheet {_MAIN}><sheetData>{{rows}}</sheetData></worksheet>"


def _related(kind: str, target: str) -> str:
    one = f'<Relationship Id="r1" Type="{_OFFICE}/{kind}" Target="{target}"/>'
    return f"<Relationships {_PACKAGE.format('relationships')}>{one}</Relationships>"


_SHEETS = '<sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets>'
_BOOK = {
    "[Content_Types].xml": f"<Types {_PACKAGE.format('content-types')}/>",
    "_rels/.rels": _related("officeDocument", "xl/workbook.xml"),
    "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_OFFICE}">{_SHEETS}</workbook>',
    "xl/_rels/workbook.xml.rels": _related("worksheet", "worksheets/sheet1.xml"),
}


def _cell(draw: Random, at: str, text: str) -> str:
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace("\0", "").replace("\x1b", "")
    if draw.random() < 0.6 or not text.replace(".", "").isdigit():
        return f'<c r="{at}" t="inlineStr"><is><t>{plain}</t></is></c>'
    return f'<c r="{at}"><v>{plain}</v></c>'


def _sheet(draw: Random) -> bytes:
    """Return a sheet of Excel, made by hand so that it costs little."""
    names = ("user", "time", "lat", "lng")
    lines = [
        dict(zip(names, ("uid", "datetime", "lat", "lng"), strict=True)),
        *(row(draw) for _ in range(draw.choice((0, 3, 6)))),
    ]
    rows = ""
    for n, one in enumerate(lines, 1):
        cells = (_cell(draw, f"{letter}{n}", one[name]) for letter, name in zip("ABCD", names, strict=True))
        rows += f'<row r="{n}">{"".join(cells)}</row>'
    if draw.random() < 0.1:
        rows = rows.replace('r="A1"', f'r="{draw.choice(("XFD1048576", "A0", "1A", "A99999999999", "ZZZZZZ9"))}"', 1)
    parts = {**_BOOK, "xl/worksheets/sheet1.xml": _SHEET.format(rows=rows)}
    if draw.random() < 0.4:
        name = draw.choice(list(parts))
        return _zip(
            draw,
            {key: any_bytes(draw, text.encode(), 2) if key == name else text.encode() for key, text in parts.items()},
        )
    return _zip(draw, {key: text.encode() for key, text in parts.items()})


def _zip(draw: Random, files: dict[str, bytes]) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w", draw.choice((zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED))) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return sink.getvalue()


def draw_pack(draw: Random) -> Case:
    text, what = written(draw), draw.randrange(8)
    if what == 0:
        name, data = "a.csv.gz", gzip.compress(text, mtime=0) * draw.choice((1, 1, 2))
    elif what == 1:
        name, data = "a.csv.zst", pa.compress(text, "zstd", asbytes=True)
    elif what == 2:
        name, data = "a.csv.bz2", bz2.compress(text)
    elif what == 3:
        name, data = "a.csv.xz", lzma.compress(text)
    elif what < 6:
        odd = [name for name in TEXTS if name and "\0" not in name and CANARY not in name]
        inner = draw.choice(
            ("a.csv",) * 6
            + ("x/a.csv", "../../a.csv", "/etc/a.csv", "a.csv/", "a.zip", "__MACOSX/a.csv", f"{draw.choice(odd)}.csv")
        )
        more = {"b.csv": written(draw)} if draw.random() < 0.3 else {}
        name, data = "a.zip", _zip(draw, {inner: text, **more})
    else:
        name, data = "a.xlsx", _sheet(draw)
    if draw.random() < 0.45:
        data = any_bytes(draw, data, 3) if draw.random() < 0.95 else draw.randbytes(draw.randrange(200))
    return Case({name: data}, options(draw))


PACKED = Kind("packed", draw_pack, read_case)
