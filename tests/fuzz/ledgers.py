"""Ledgers: any change is noticed by the seal; with a seal that fits, the content is still checked."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tests.fuzz.case import CANARIES, CANARY, Broken, Case, Kind
from tests.fuzz.mutate import EDGES, KEYS, any_bytes, as_json, tree

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

_NAME = "people.ledger"
_FIRST = b"shoal ledger 1\n"
_ENTRY = {
    "release": "r.parquet",
    "sha256": "0" * 64,
    "method": "shoal",
    "claim": {"name": "k-anonymity", "k": 2},
    "k": 2,
    "period": ["2026-01-01", "2026-01-14"],
    "seeded": False,
    "users": 6,
    "grouped": True,
    "begun": "2026-01-02T00:00:00+00:00",
    "published": "2026-01-02T00:00:00+00:00",
}
_LABELS = [f"{CANARY}-{n}" for n in range(8)]


@cache
def _marks() -> bytes:
    """Return the fingerprints of six people, sorted."""
    from shoal.publishing.ledger.fingerprints import fingerprints

    return np.sort(fingerprints(pa.array(_LABELS[:6]), bytes(32))).astype("<u8").tobytes()


def _content() -> tuple[Any, bytes]:
    entries = [{**_ENTRY}, {**_ENTRY, "release": "s.parquet", "grouped": False, "published": None}]
    columns = _marks() + np.array([0, 0, 0, 3, 3, 3], "<i4").tobytes() + _marks()
    return {"key": bytes(32).hex(), "releases": entries}, columns


def draw_ledger(draw: Random) -> Case:
    header, columns = _content()
    first, text = _FIRST, json.dumps(header).encode()
    what = draw.randrange(14)
    if what > 9:  # still a ledger, in which these people are
        name = draw.choice(("release", "method", "begun", "published", "claim"))
        header["releases"] = [{**entry, name: draw.choice((*KEYS, entry[name]))} for entry in header["releases"]]
        text = json.dumps(header).encode()
    elif what < 5:
        text = as_json(draw, tree(draw, header, 3))
    elif what == 5:
        header["releases"][draw.randrange(2)]["users"] = draw.choice(EDGES)
        text = json.dumps(header).encode()
    elif what < 8:
        columns = any_bytes(draw, columns, 3)
    elif what == 8:
        first = any_bytes(draw, first, 2)
    body = first + text + b"\n" + columns
    if draw.random() < 0.1:
        body = any_bytes(draw, body, 3)
    body = _without_canaries(body)
    data = body + hashlib.sha256(body).digest()
    sealed = data
    if draw.random() >= 0.85:
        data = _without_canaries(any_bytes(draw, data, 2))
    return Case({_NAME: data}, {"sealed": data == sealed})


def _without_canaries(data: bytes) -> bytes:
    """Return the data without what no message may tell: names of releases, which are told, must not hold it."""
    for canary in CANARIES:
        data = data.replace(canary.encode(), b"x" * len(canary))
    return data


def act(case: Case, folder: Path) -> Any:
    """Open a ledger as a run does, and look whether people are in it."""
    from types import SimpleNamespace

    from shoal.publishing.ledger.book import open_book

    path, people = folder / _NAME, SimpleNamespace(labels=pa.array(_LABELS))
    honest = b"".join([_FIRST, json.dumps(_content()[0]).encode(), b"\n", _content()[1]])
    try:
        for allowed in (True, False):
            open_book(path, allow_overlap=allowed).meet(people)
    finally:
        if path.read_bytes() != case.files[_NAME]:
            raise Broken("wrong", "the ledger was changed")
    if case.files[_NAME][:-32] == honest or not case.options["sealed"]:
        raise Broken("wrong", "people who are in the ledger were not found, or its seal does not matter")
    return []


LEDGER = Kind("ledger", draw_ledger, act)
