"""The kinds of input that are fuzzed."""

from __future__ import annotations

from tests.fuzz.columnar import ARROW, PARQUET
from tests.fuzz.texts import CSV

KINDS = {kind.name: kind for kind in (CSV, PARQUET, ARROW)}
