"""Features out of JSON text of any length: a collection, one feature, or one after the other."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from shoal.errors import UnreadableFile
from shoal.reading.limits import MAX_FEATURE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TextIO

__all__ = ["JsonStream"]

_CHUNK = 1 << 18
_BLANK = " \t\r\n\x1e"  # RFC 8142 puts a record separator before each feature


class JsonStream:
    """Reads features from text; holds one of them, and a quarter of a million characters."""

    def __init__(self, text: TextIO, name: str) -> None:
        self._text, self._name = text, name
        self._buffer, self._at, self._ended = "", 0, False
        self._decoder = json.JSONDecoder()

    def features(self) -> Iterator[tuple[str, Any]]:
        """Yield each feature as ("feature", value), and other members of collections by their names.

        Raises UnreadableFile for what is not JSON.
        """
        try:
            while self._peek():
                yield from self._object()
        except (UnicodeError, RecursionError):
            raise self._damaged() from None

    def _object(self) -> Iterator[tuple[str, Any]]:
        """Read an object that may be a collection that is too long to be held."""
        whole = self._value_at_hand()
        if whole is None:
            members: dict[str, Any] = {}
            for name in self._members():
                if name == "features" and self._peek() == "[":
                    yield from self._items()
                    members["features"] = []
                else:
                    members[name] = self._value()
            whole = members
        if not isinstance(whole, dict):
            raise UnreadableFile(f"{self._name}: not GeoJSON: it holds no features")
        if "features" not in whole:
            yield "feature", whole
            return
        features = whole.pop("features")
        yield from (("feature", feature) for feature in (features if isinstance(features, list) else []))
        yield from whole.items()

    def _members(self) -> Iterator[str]:
        """Yield the names of an object's members; the caller reads each value."""
        self._take("{")
        while self._peek() != "}":
            name = self._value()
            if not isinstance(name, str):
                raise self._damaged()
            self._take(":")
            yield name
            if self._peek() == ",":
                self._take(",")
            elif self._peek() != "}":
                raise self._damaged()
        self._take("}")

    def _items(self) -> Iterator[tuple[str, Any]]:
        self._take("[")
        while self._peek() != "]":
            yield "feature", self._value()
            if self._peek() == ",":
                self._take(",")
            elif self._peek() != "]":
                raise self._damaged()
        self._take("]")

    def _value(self) -> Any:
        """Read a value, and as much text as it takes."""
        self._peek()
        more = _CHUNK
        while True:
            try:
                value, end = self._decoder.raw_decode(self._buffer, self._at)
            except ValueError:
                end = len(self._buffer)
            else:
                # A number may go on in the next chunk.
                if end < len(self._buffer) or self._ended:
                    self._at = end
                    return value
            if self._ended or len(self._buffer) - self._at > MAX_FEATURE:
                raise self._damaged()
            self._fill(more)
            more *= 2

    def _value_at_hand(self) -> Any:
        """Read a value if all of it is in the buffer, or return None."""
        try:
            value, self._at = self._decoder.raw_decode(self._buffer, self._at)
        except ValueError:
            return None
        return value

    def _peek(self) -> str:
        """Return the next character that is not blank; an empty text at the end."""
        while True:
            while self._at < len(self._buffer) and self._buffer[self._at] in _BLANK:
                self._at += 1
            if self._at < len(self._buffer) or self._ended:
                return self._buffer[self._at : self._at + 1]
            self._fill(_CHUNK)

    def _take(self, sign: str) -> None:
        if self._peek() != sign:
            raise self._damaged()
        self._at += 1

    def _fill(self, size: int) -> None:
        """Read more text, and forget what was used."""
        chunk = self._text.read(size)
        self._ended = not chunk
        self._buffer, self._at = self._buffer[self._at :] + chunk, 0

    def _damaged(self) -> UnreadableFile:
        return UnreadableFile(
            f"{self._name}: not whole, valid JSON in UTF-8 (cut off or damaged), or one feature of more than "
            f"{MAX_FEATURE >> 20} MB; export it again"
        )
