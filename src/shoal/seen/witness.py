"""Witness: read the original a second time, with another parser, and compare what was read.

The reader of input files is shared by the code that makes releases and by the verifier, so a misreading would be
agreed with. The witness finds, opens and reads the files with Arrow and Python alone. It shares nothing with
the reader but the declared options and the account, which says which columns were taken and how many rows broke
which rule. It compares the number of rows, the people, and sums over users, times and places of all rows that are kept.

What only the reader understands (a date such as 3.4.2012, an antenna's place) is left out and said so. Whatever both
understand must be equal.
"""

from __future__ import annotations

import csv
import lzma
import zipfile
import zlib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from shoal.seen.digest import Digest, People, text_hashes
from shoal.seen.witness_files import Unseen, files_of
from shoal.seen.witness_rows import OF_PLACE, OF_TIME, Case, Plan, Seen, TooStrange, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from shoal.reading.account import Account
    from shoal.reading.events import Events
    from shoal.reading.options import ReadOptions
    from shoal.seen.findings import Findings

__all__ = ["Witness"]

_NO_ROW = "not a row of the table"
# Why a second parser has nothing to say.
_WHY = {
    "address": "it comes from a database or an object store",
    "memory": "it is a table in memory, not a file",
    "form": "no second parser knows its form",
    "columns": "a second parser can't tell its columns",
    "users": "a second parser can't read its users",
    "damaged": "a second parser can't open it",
}
_PARTS = {"time": "times", "place": "places"}
_DAMAGED = (
    *(pa.ArrowException, OSError, ValueError, LookupError, EOFError, RuntimeError, OverflowError),
    *(SyntaxError, zipfile.BadZipFile, lzma.LZMAError, zlib.error, csv.Error),
)


@dataclass(eq=False)
class Witness:
    """A second reading of the files of an original.

    `begin` takes the options and the account of the reader, `hear` each part of its events. Then `testify` reads the
    files and adds findings. Cost: some 10 ns a value; memory for some batches, and 8 bytes a person.
    """

    original: Any
    said: Digest = field(default_factory=Digest)
    people: People = field(default_factory=People)
    options: ReadOptions | None = None
    account: Account | None = None

    def begin(self, options: ReadOptions, account: Account) -> None:
        """Take the options and the complete account of the reader."""
        self.options, self.account = options, account

    def hear(self, events: Events) -> None:
        """Add up a part of the rows that the reader kept."""
        hashes = text_hashes(pc.cast(events.labels, pa.string()))
        self.people.add(hashes)
        a, b = (events.lng, events.lat) if events.lng is not None else (events.east, events.north)
        self.said.add_by(hashes, events.users, events.epoch_ms, a, b)

    def overhear(self, parts: Iterable[Events]) -> Iterator[Events]:
        """Yield the parts, each after it was heard."""
        for events in parts:
            self.hear(events)
            yield events

    def testify(self, findings: Findings) -> None:
        """Read the original and compare; note what can't be compared."""
        if self.account is None or self.options is None:
            return
        try:
            case = Case(list(files_of(self.original)), self.options, self.account)
            plan, codes = self._compared(case)
        except (Unseen, *_DAMAGED) as error:
            findings.note("original-one-parser", why=_WHY[error.why if isinstance(error, Unseen) else "damaged"])
            findings.skip("original")
            return
        findings.fail_if("rows" in codes, "original/rows")
        findings.fail_if("people" in codes, "original/people")
        findings.fail_if("kept" in codes, "original/kept")
        findings.fail_if("times" in codes, "original/times")
        findings.fail_if("places" in codes, "original/places")
        findings.fail_if("pairs" in codes, "original/pairs")
        alone = " and ".join(_PARTS[part] for part in _PARTS if not getattr(plan, part))
        if not case.comparable(plan):
            findings.note("original-counted", what=alone)
        elif alone:
            findings.note("original-partly", what=alone)

    def _compared(self, case: Case) -> tuple[Plan, list[str]]:
        """Count, first as quickly as possible, until all that both parsers understand is equal, or is not."""
        plan = _first_plan(case)
        while True:
            try:
                seen = _count(case, plan)
            except TooStrange as strange:
                plan = replace(plan, **{strange.part: False})
                continue
            codes = _differences(case, plan, seen, self)
            if not codes:
                return plan, []
            # The reader may have read some of what is strange here, unless it says that it set aside all of it.
            for part, rule in (("time", OF_TIME[0]), ("place", OF_PLACE[0])):
                if getattr(plan, part) and seen.strange[part] and seen.no[part] != case.dropped(rule):
                    plan = replace(plan, **{part: False})
                    break
            else:
                if plan.kind is None:
                    return plan, codes
                plan = replace(plan, kind=None)  # some texts may only seem to be times


def _first_plan(case: Case) -> Plan:
    roles, options = case.roles, case.options
    if "user" not in roles or roles.get("geometry", "") == roles.get("time"):
        raise Unseen("columns")
    told = options.time_format is not None and "%" in options.time_format
    inside = options.bbox is None or "lng" in roles
    return Plan(not told, case.place is not None and inside, pa.timestamp("us"))


def _differences(case: Case, plan: Plan, seen: Seen, witness: Witness) -> list[str]:
    account, said, kept = case.account, witness.said, seen.kept
    codes = []
    if seen.rows != account.rows_read - case.dropped(_NO_ROW):
        codes.append("rows")
    everybody = not account.users_dropped  # whom the reader names are all there are
    if len(seen.people) != account.people or (everybody and seen.people.total != witness.people.total):
        codes.append("people")
    if not case.comparable(plan):
        return codes
    if kept.rows != said.rows:
        return [*codes, "kept"]
    if kept.users != said.users and "people" not in codes:
        codes.append("people")
    if plan.time and kept.times != said.times:
        codes.append("times")
    if plan.place and kept.places != said.places:
        codes.append("places")
    if codes:
        return codes
    by = "whole" if plan.time and plan.place else "user_times" if plan.time else "user_places"
    return ["pairs"] if (plan.time or plan.place) and getattr(kept, by) != getattr(said, by) else []


def _count(case: Case, plan: Plan) -> Seen:
    """Count all files; a text is read with types first, and as text where they do not fit."""
    everything = Seen()
    for found in case.found:
        for kind in _kinds(plan.kind):
            seen = Seen(people=everything.people)
            try:
                for rows in rows_of(case, plan, found, kind):
                    seen.add(case, rows)
                    _check_strange(case, plan, everything, seen)
            except pa.ArrowInvalid:
                if kind is None or found.ending in (".parquet", ".pq"):
                    raise
                continue
            everything.merge(seen)
            break
    return everything


def _kinds(first: pa.DataType | None) -> list[pa.DataType | None]:
    return [None] if first is None else [first, pa.timestamp("us", "UTC"), pa.float64(), None]


def _check_strange(case: Case, plan: Plan, before: Seen, seen: Seen) -> None:
    for part, rule in (("time", OF_TIME[0]), ("place", OF_PLACE[0])):
        if getattr(plan, part) and before.strange[part] + seen.strange[part] > case.dropped(rule):
            raise TooStrange(part)
