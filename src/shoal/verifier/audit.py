"""The audit file: who owns which record and who was merged into it. Private; checked, never believed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from shoal.errors import CannotCheck
from shoal.verifier.arrays import distinct

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from shoal.verifier.crowd import Crowd
    from shoal.verifier.records import Catalogue
    from shoal.verifier.verdict import Findings

__all__ = ["Witnesses", "read_audit"]

_COLUMNS = ("record", "owner", "member")


@dataclass(frozen=True, eq=False)
class Witnesses:
    """The claimed pairs: user `users[p]` was merged into record `records[p]`.

    `owner[r]` is the user published as record r, `own[u]` the record of user u (-1: not published). `good[p]`
    says whether the pair was found to be two-way cover (all true until it is checked).
    """

    users: NDArray[np.int64]
    records: NDArray[np.int64]
    owner: NDArray[np.int64]
    own: NDArray[np.int64]
    good: NDArray[np.bool_]

    def persons(self) -> NDArray[np.int64]:
        """Count, for each user, the distinct persons published as the records that were found to cover her."""
        pairs = distinct(self.users[self.good] * len(self.own) + self.owner[self.records[self.good]])
        return np.bincount(pairs // len(self.own), minlength=len(self.own))

    def owned(self) -> NDArray[np.int64]:
        """Give the good pairs in which a user owns the record."""
        return np.flatnonzero(self.good & (self.own[self.users] == self.records))

    def checked(self, good: NDArray[np.bool_]) -> Witnesses:
        """Give the same pairs with the outcome of their check."""
        return replace(self, good=good)


def read_audit(findings: Findings, audit: str | Path | pa.Table, people: Crowd, records: Catalogue) -> Witnesses | None:
    """Read an audit and check that it makes sense; None (and a failure of kind `audit`) if it does not.

    Every person inside the claim has a row, every record an owner among its members, and nobody twice.
    """
    findings.ran("audit")
    table = _table(audit)
    if tuple(table.column_names[:3]) != _COLUMNS or not pa.types.is_integer(table.schema.field("record").type):
        findings.fail("audit", "The audit does not have the columns record (integer), owner, member.")
        return None
    owner, member = (_users(table[name], people) for name in ("owner", "member"))
    empty = pc.is_null(table["record"]).to_numpy(zero_copy_only=False)
    numbers: Any = table["record"].cast(pa.int64())
    number = pc.fill_null(numbers, -1).to_numpy()
    record = _positions(number, records.uids)
    before = len(findings.failures)
    _check_rows(findings, owner, member, record, empty)
    if len(findings.failures) > before:
        return None
    rows = ~empty
    _check_owners(findings, owner, member, record, empty, people, records)
    own = np.full(len(people), -1, dtype=np.int64)
    own[owner[rows]] = record[rows]
    owner_of = np.full(len(records), -1, dtype=np.int64)
    owner_of[record[rows]] = owner[rows]
    if "audit" in findings.failures:
        return None
    return Witnesses(member[rows], record[rows], owner_of, own, np.ones(int(rows.sum()), dtype=bool))


def _table(audit: str | Path | pa.Table) -> pa.Table:
    if isinstance(audit, pa.Table):
        return audit
    try:
        if str(audit).lower().endswith(".csv"):
            types = {"record": pa.int64(), "owner": pa.string(), "member": pa.string()}
            return pa_csv.read_csv(audit, convert_options=pa_csv.ConvertOptions(column_types=types))
        with pq.ParquetFile(audit) as file:
            return file.read()
    except (OSError, pa.ArrowException):
        raise CannotCheck("the audit file can't be read; give the file that --audit wrote") from None


def _users(labels: Any, people: Crowd) -> NDArray[np.int64]:
    """Give the index of each label among the people inside the claim, -1 for unknown ones."""
    known = people.labels.cast(pa.large_string())
    places = pc.index_in(labels.cast(pa.large_string()), value_set=known)
    return pc.fill_null(places, -1).to_numpy().astype(np.int64)  # type: ignore[no-any-return]


def _positions(number: NDArray[np.int64], uids: NDArray[np.int64]) -> NDArray[np.int64]:
    if not len(uids):
        return np.full(len(number), -1, dtype=np.int64)
    place = np.clip(np.searchsorted(uids, number), 0, len(uids) - 1)
    return np.where(uids[place] == number, place, -1)


def _check_rows(findings: Findings, owner: Any, member: Any, record: Any, empty: Any) -> None:
    unknown = int(((owner < 0) | (member < 0)).sum())
    findings.fail_if(unknown, "audit", f"{unknown:,} rows of the audit name nobody who is in the original.")
    stray = int(((record < 0) & ~empty).sum())
    findings.fail_if(stray, "audit", f"{stray:,} rows of the audit name a record that is not in the release.")
    width = int(member.max(initial=-1)) + 2  # unknown ones are -1
    pairs = (record[~empty] + 1) * width + member[~empty] + 1
    twice = len(pairs) - len(distinct(pairs))
    findings.fail_if(twice, "audit", f"{twice:,} rows of the audit repeat a member of a record.")
    odd = int((empty & (owner != member)).sum())
    findings.fail_if(odd, "audit", f"{odd:,} rows of the audit have members but no record.")


def _check_owners(
    findings: Findings, owner: Any, member: Any, record: Any, empty: Any, people: Crowd, records: Catalogue
) -> None:
    rows = ~empty
    owned = distinct(record[rows] * len(people) + owner[rows])
    present = distinct(record[rows] * len(people) + member[rows])
    outside = len(distinct(np.concatenate([owned, present]))) - len(present)
    findings.fail_if(outside, "audit", f"{outside:,} records have an owner who is not among their members.")
    owners = np.bincount(owned // len(people), minlength=len(records))
    none, many = int((owners == 0).sum()), int((owners > records.weights).sum())
    fewer = int(((owners > 0) & (owners < records.weights)).sum())
    findings.fail_if(none, "audit", f"{none:,} records have no owner in the audit.")
    findings.fail_if(many, "audit", f"{many:,} records have more owners than people they were published for.")
    findings.fail_if(fewer, "audit", f"{fewer:,} records have fewer owners than people they were published for.")
    own = np.bincount(owned % len(people), minlength=len(people))
    unpublished = np.bincount(owner[empty], minlength=len(people))
    missing = int(((own == 0) & (unpublished == 0)).sum())
    findings.fail_if(missing, "audit", f"{missing:,} users have no row of their own in the audit.")
    unclear = int(((unpublished > 1) | ((unpublished > 0) & (own > 0))).sum())
    findings.fail_if(unclear, "audit", f"{unclear:,} users are both published and not, or twice not.")
    double = int((own > 1).sum())
    findings.fail_if(double, "truth", f"{double:,} persons own more than one record.")
