"""The kinds of input that are fuzzed."""

from __future__ import annotations

from tests.fuzz.columnar import ARROW, PARQUET
from tests.fuzz.configurations import TOML
from tests.fuzz.frames import FRAME
from tests.fuzz.ledgers import LEDGER
from tests.fuzz.objects import JSON
from tests.fuzz.packs import PACKED
from tests.fuzz.published import AUDIT, MANIFEST, RECORD, RELEASE
from tests.fuzz.texts import CSV

_ALL = (CSV, PARQUET, TOML, MANIFEST, RELEASE, AUDIT, LEDGER, RECORD, ARROW, JSON, PACKED, FRAME)
KINDS = {kind.name: kind for kind in _ALL}
