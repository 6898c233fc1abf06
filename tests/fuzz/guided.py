"""Fuzzing guided by coverage, of the layers that are plain Python: `python -m tests.fuzz.guided TARGET [options]`.

Atheris looks which bytes reach new lines, and goes on from there. Options are
those of libFuzzer. A finding is a file `crash-…`: put what it shows into `seeds/`.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


def _header(data: bytes) -> None:
    """Read the `shoal` object of a release, and check that it is public."""
    from shoal.seen.findings import Findings
    from shoal.seen.header import parse_json, read_header
    from shoal.verifier.header import check_header

    stated = parse_json(data)
    if read_header(stated) is not None:
        check_header(Findings(), stated)


def _manifest(data: bytes) -> None:
    """Check a manifest beside a release that is an empty file."""
    from shoal.seen.findings import Findings
    from shoal.seen.header import parse_json
    from shoal.verifier.integrity import check_counts, check_manifest

    findings = Findings()
    found = check_manifest(findings, Path("/dev/null"), parse_json(data), None, is_csv=True)
    if found is not None:
        check_counts(findings, found["counts"], 1, 1, None)


def _text(data: bytes) -> None:
    """Look at the beginning of a text: its encoding, delimiter and names."""
    from shoal.reading.columns import find_columns
    from shoal.reading.texts import decoded, form_of

    text, _, _ = decoded(data, None, "a.csv", whole=True)
    find_columns(form_of(text, "a.csv", ".csv", {}, whole=True).columns, {}, "a.csv")


def _toml(data: bytes) -> None:
    """Read a configuration file, and the reading options in it."""
    from shoal.cli import app
    from shoal.reading.options import ReadOptions

    with tempfile.NamedTemporaryFile(dir="/dev/shm") as file:
        file.write(data)
        file.flush()
        ReadOptions(**app._toml(Path(file.name)).get("read", {}))


def _geojson(data: bytes) -> None:
    """Read the features of a GeoJSON file."""
    from shoal.reading.forms.geojson import _Known, _rows
    from shoal.reading.forms.json_stream import JsonStream

    with contextlib.suppress(UnicodeError):  # the caller's
        for _ in _rows(JsonStream(io.TextIOWrapper(io.BytesIO(data), "utf-8-sig"), "a.geojson"), _Known("a.geojson")):
            pass


_JSON = ['"k"', '"claim"', '"name"', '"format"', '"cell_m"', '"slot_s"', '"crs"', '"parameters"', '"method"']
TARGETS: dict[str, tuple[Callable[[bytes], None], list[str]]] = {
    "header": (_header, [*_JSON, '"k-anonymity"', '"cover"', '"EPSG:32628"', '"+proj=laea +lat_0=40 +lon_0=116"']),
    "manifest": (_manifest, [*_JSON, '"shoal"', '"counts"', '"seeded"', '"files"', '"records"', '"samples_published"']),
    "text": (_text, ["uid", "datetime", "lat", "lng", "sep=;", "\ufeff", "user_id", "1772352000"]),
    "toml": (_toml, ["[read]", "tz", "cell", "period", "bbox", "columns", "time_format", "split_gap", '"500m"']),
    "geojson": (_geojson, ['"type"', '"Feature"', '"features"', '"Point"', '"coordinates"', '"sequences"', '"times"']),
}
_MODULES = ["shoal.seen", "shoal.verifier.header", "shoal.verifier.integrity", "shoal.claim", "shoal.units"]
_MODULES += ["shoal.reading", "shoal.cli.app", "shoal.settings", "shoal.names", "tomllib", "json"]


def _seeds(target: str) -> list[bytes]:
    """Return honest inputs to start from."""
    from tests.fuzz.honest import honest

    if target in ("header", "manifest"):
        manifests = [one.manifest for one in honest().values()]
        import json

        return [json.dumps(one["shoal"] if target == "header" else one).encode() for one in manifests]
    from random import Random

    from tests.fuzz.configurations import draw_configuration
    from tests.fuzz.objects import draw_objects
    from tests.fuzz.texts import draw_text

    draw = {"text": draw_text, "toml": draw_configuration, "geojson": draw_objects}[target]
    cases = [draw(Random(number)) for number in range(200)]
    return [data for case in cases for data in case.files.values() if len(data) < 4_000]


def main() -> None:
    """Run a target until it is stopped, or as libFuzzer's options say."""
    import atheris

    target = sys.argv.pop(1)
    act, words = TARGETS[target]
    with atheris.instrument_imports(include=_MODULES):
        import shoal
        import shoal.cli.app
        import shoal.reading.columns
        import shoal.reading.forms.geojson
        import shoal.reading.options
        import shoal.reading.texts
        import shoal.verifier.header
        import shoal.verifier.integrity  # noqa: F401
    from shoal.errors import ShoalError

    def one(data: bytes) -> Any:
        with contextlib.suppress(ShoalError):
            act(data)

    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "corpus")
        corpus.mkdir()
        for number, data in enumerate(_seeds(target)):
            (corpus / str(number)).write_bytes(data)
        escaped = (word.replace("\\", "\\\\").replace('"', '\\"') for word in words if word.isascii())
        Path(folder, "words").write_text("".join(f'"{word}"\n' for word in escaped))
        atheris.Setup([sys.argv[0], f"-dict={folder}/words", *sys.argv[1:], str(corpus)], one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
