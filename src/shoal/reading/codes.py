"""Codes: cells of H3 and geohash become the degrees of their centres, a column at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.arrow import from_arrow_array, to_arrow_array
from shoal.errors import UnreadableFile

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CentresOf", "geohash_centres", "h3_centres"]

_ALPHABET = b"0123456789bcdefghjkmnpqrstuvwxyz"
_MOST = 12  # characters that are read; more of them say less than a tenth of a millimetre
_BITS = np.full(256, 255, np.uint8)
for _digits in (_ALPHABET, _ALPHABET.upper()):
    _BITS[np.frombuffer(_digits, np.uint8)] = np.arange(32, dtype=np.uint8)
_REMEMBERED = 1_000_000  # H3 cells whose centres are kept
_EQUATOR_M = 40_075_017
_UNKNOWN = (np.inf, 0.0, -1)  # an infinite place is an unknown cell


def geohash_centres(codes: pa.Array) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return longitude and latitude of the centres of geohashes, and their lengths.

    NaN for missing codes; an infinite longitude and the length -1 for texts that are no geohash.

    >>> lng, lat, length = geohash_centres(pa.array(["ezs42", "a!", None]))
    >>> lng.round(3).tolist(), lat.round(3).tolist(), length.tolist()
    ([-5.603, inf, nan], [42.605, 0.0, nan], [5, -1, -1])
    """
    codes = pc.utf8_trim_whitespace(codes)
    missing = pc.fill_null(pc.equal(codes, ""), True)  # noqa: FBT003
    missing = from_arrow_array(missing.cast(pa.uint8())) == 1
    codes = pc.fill_null(codes, "").cast(pa.large_string()).cast(pa.large_binary())
    _, offsets, buffer = codes.buffers()
    edges = np.frombuffer(offsets, np.int64, len(codes) + 1, codes.offset * 8) if len(codes) else np.zeros(1, np.int64)
    data = np.frombuffer(buffer, np.uint8) if buffer is not None else np.empty(0, np.uint8)
    starts, length = edges[:-1], np.diff(edges)
    good = (length > 0) & (length <= 2 * _MOST)
    used = np.minimum(length, _MOST)
    steps = np.zeros((2, len(codes)), np.int64)  # of longitude and latitude, in halvings
    for place in range(int(length[good].max(initial=0))):
        rows = np.flatnonzero(good & (length > place))
        bits = _BITS[data[starts[rows] + place]]
        good[rows[bits > 31]] = False
        if place < _MOST:
            for shift in range(4, -1, -1):
                axis = (place * 5 + 4 - shift) % 2  # the first bit halves the longitudes
                steps[axis, rows] = steps[axis, rows] * 2 + ((bits >> shift) & 1)
    lng_bits, lat_bits = (5 * used + 1) // 2, 5 * used // 2
    lng = -180 + (steps[0] + 0.5) * np.ldexp(360.0, -lng_bits)
    lat = -90 + (steps[1] + 0.5) * np.ldexp(180.0, -lat_bits)
    lng, lat = np.where(good, lng, np.inf), np.where(good, lat, 0.0)
    lng[missing], lat[missing] = np.nan, np.nan
    return lng, lat, np.where(good, length, -1)


def h3_centres(
    codes: pa.Array, known: dict[Any, tuple[float, float, int]]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Return longitude and latitude of the centres of H3 cells, and their resolutions.

    Cells are numbers, or text in hexadecimal or decimal digits. NaN for missing cells; an infinite longitude and the
    resolution -1 for what is no cell. Centres that were found are looked up in `known`, and added to it.
    """
    if len(known) > _REMEMBERED:
        known.clear()
    found = [known.get(code) or _h3_centre(code, known) for code in codes.to_pylist()]
    columns = np.array(found, np.float64).reshape(-1, 3)
    lng, lat, resolution = columns.T
    return np.ascontiguousarray(lng), np.ascontiguousarray(lat), resolution.astype(np.int64)


def _h3_centre(code: Any, known: dict[Any, tuple[float, float, int]]) -> tuple[float, float, int]:
    from h3.api import basic_int

    if code is None or code == "":
        return np.nan, np.nan, -1
    try:
        number = code if isinstance(code, int) else _h3_number(code.strip())
        valid = basic_int.is_valid_cell(number)
    except (ValueError, OverflowError):
        valid = False
    if valid:
        lat, lng = basic_int.cell_to_latlng(number)
        centre = (lng, lat, int(basic_int.get_resolution(number)))
    else:
        centre = _UNKNOWN
    known[code] = centre
    return centre


def _h3_number(text: str) -> int:
    """Return the number of a cell: 15 or 16 hexadecimal digits, or 18 decimal ones."""
    return int(text, 10 if len(text) == 18 else 16)


@dataclass
class CentresOf:
    """Decodes one column of cells; remembers how large the largest of them was."""

    system: str
    where: str
    coarsest: int | None = field(default=None, init=False)
    _known: dict[Any, tuple[float, float, int]] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.system == "h3":
            try:
                import h3  # noqa: F401  used later, by rows
            except ImportError:
                raise UnreadableFile(
                    f'{self.where}: places are H3 cells; to read them, `pip install "shoal-privacy[h3]"`'
                ) from None

    def degrees(self, values: Any) -> pa.Array:
        """Return structs (a, b) of longitude and latitude; NaN for missing cells, infinite for unknown ones."""
        flat = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        lng, lat, levels = h3_centres(flat, self._known) if self.system == "h3" else geohash_centres(flat)
        levels = levels[levels >= 0]
        if len(levels):
            coarsest = int(levels.min())
            self.coarsest = coarsest if self.coarsest is None else min(self.coarsest, coarsest)
        return pa.StructArray.from_arrays([to_arrow_array(lng), to_arrow_array(lat)], names=["a", "b"])

    def width_m(self) -> float | None:
        """Return about how wide the largest cells are: the side of a square of their size, for geohash the longer side.

        >>> cells = CentresOf("geohash", "a.csv")
        >>> _ = cells.degrees(pa.array(["ezs42ezs", "ezs42ez"]))
        >>> round(cells.width_m())
        153
        """
        if self.coarsest is None:
            return None
        if self.system == "h3":
            import h3

            return math.sqrt(h3.average_hexagon_area(self.coarsest, "m^2"))
        bits = 5 * min(self.coarsest, _MOST)
        return float(max(_EQUATOR_M / 2 ** ((bits + 1) // 2), _EQUATOR_M / 2 / 2 ** (bits // 2)))
