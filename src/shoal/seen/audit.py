"""The audit file says who owns each record and who was merged into it. It is private, and checked before it is used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from shoal.arrow import from_arrow_array, scalar_of, to_arrow_array
from shoal.errors import CannotCheck, TooLarge
from shoal.regular import open_regular
from shoal.run import LOCAL, Run
from shoal.seen.arrays import distinct, fresh, spread
from shoal.seen.pages import open_parquet, unpacked

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shoal.release import Release
    from shoal.seen.findings import Findings
    from shoal.seen.people import Crowd
    from shoal.seen.records import Catalogue

__all__ = ["Witnesses", "audit_of", "audit_rows", "places_among", "read_audit", "read_owners"]

_COLUMNS = ("record", "owner", "member")
_TYPES = (pa.int64(), pa.large_string(), pa.large_string())
_TIMES = ("t_start", "t_end")
_EVER = 1 << 62
_ROW_BYTES = 64  # a number and two labels
_MOST_LABEL = 4_096  # bytes of one: a thousand characters are read
_MOST_LABELS = 1 << 28  # bytes that labels may take besides, where some are long


@dataclass(frozen=True, eq=False)
class Witnesses:
    """The claimed pairs: user `users[p]` was merged into record `records[p]`.

    `owner[r]` is the user published as record r, `own[u]` the record of user u (-1: not published). `good[p]`
    says whether the pair was found to be two-way cover (all true until it is checked). If users were merged for some
    time only, `first[p]` and `last[p]` are the first and the last slot of that time; owners are merged for all time.
    """

    users: NDArray[np.int64]
    records: NDArray[np.int64]
    owner: NDArray[np.int64]
    own: NDArray[np.int64]
    good: NDArray[np.bool_]
    first: NDArray[np.int64] | None = None
    last: NDArray[np.int64] | None = None

    def persons(self) -> NDArray[np.int64]:
        """Count for each user the distinct persons published as the records that were found to cover the user."""
        pairs = distinct(self.users[self.good] * len(self.own) + self.owner[self.records[self.good]])
        return np.bincount(pairs // len(self.own), minlength=len(self.own))

    def owned(self) -> NDArray[np.int64]:
        """Return the good pairs whose user owns the record."""
        return np.flatnonzero(self.good & (self.own[self.users] == self.records))

    def checked(self, good: NDArray[np.bool_]) -> Witnesses:
        """Return the same pairs with the results of their check."""
        return replace(self, good=good)


def read_audit(
    findings: Findings,
    audit: str | Path | pa.Table,
    people: Crowd,
    records: Catalogue,
    *,
    slot_s: int | None = None,
    run: Run = LOCAL,
) -> Witnesses | None:
    """Read an audit and check that it is consistent; return None, and note a failure of kind `audit`, if it is not.

    Every person inside the claim has a row, every record has an owner among its members,
    and nobody is repeated. With `slot_s`,
    the columns `t_start` and `t_end` are read where there are any: a member may then have several rows.
    """
    table = _table(findings, audit, run)
    if table is None:
        return None
    owner, member = (_users(table[name], people.labels) for name in ("owner", "member"))
    empty = from_arrow_array(pc.is_null(table["record"]))
    record = _positions(table["record"], records.uids)
    timed = all(name in table.column_names for name in _TIMES)
    times = None if slot_s is None or not timed else _slots(findings, table, slot_s)
    _check_rows(findings, owner, member, record, empty, times)
    if "audit" in findings.failures:
        return None
    rows = ~empty
    _check_owners(findings, owner, member, record, empty, people, records)
    own = np.full(len(people), -1, dtype=np.int64)
    own[owner[rows]] = record[rows]
    owner_of = np.full(len(records), -1, dtype=np.int64)
    owner_of[record[rows]] = owner[rows]
    if "audit" in findings.failures:
        return None
    good = np.ones(int(rows.sum()), dtype=bool)
    if times is None:
        return Witnesses(member[rows], record[rows], owner_of, own, good)
    always = (owner == member)[rows]
    first, last = np.where(always, -_EVER, times[0][rows]), np.where(always, _EVER, times[1][rows])
    return Witnesses(member[rows], record[rows], owner_of, own, good, first, last)


def read_owners(
    findings: Findings, audit: str | Path | pa.Table, labels: Any, uids: NDArray[np.int64], *, run: Run = LOCAL
) -> NDArray[np.int64] | None:
    """Return the person published as each record of points, or None (and note a failure of kind `audit`).

    A person may have several records, since a trace can be split. Each record has one row, in which the owner is the
    only member.
    """
    table = _table(findings, audit, run)
    if table is None:
        return None
    owner, member = (_users(table[name], labels) for name in ("owner", "member"))
    empty = from_arrow_array(pc.is_null(table["record"]))
    record = _positions(table["record"], uids)
    _check_rows(findings, owner, member, record, empty, None)
    other = int((owner != member).sum())
    findings.fail_if(other, "audit/member-not-owner")
    once = np.array_equal(np.sort(record[~empty]), np.arange(len(uids)))
    findings.fail_if(not once, "audit/not-one-owner")
    published, missing = (np.bincount(owner[rows & (owner >= 0)], minlength=len(labels)) for rows in (~empty, empty))
    unclear = int(((published > 0) + missing != 1).sum())
    findings.fail_if(unclear, "audit/missing-or-both")
    if "audit" in findings.failures:
        return None
    owners = np.empty(len(uids), dtype=np.int64)
    owners[record[~empty]] = owner[~empty]
    return owners


def audit_of(release: Release) -> pa.Table | None:
    """Return the audit of a release that is still in memory; None if the release does not know its members.

    There is a row for each member of each record, and one without a record for everybody who owns none. In a compact
    release all members of a record own it. This code is separate from the code that publishes audits.
    """
    members = release.members
    if members is None:
        return None
    labels = members.people.labels.cast(pa.string())
    record, member = spread(np.diff(members.offsets)), members.indices
    owner = members.owners[record] if release.multiplicity is None else member
    left_out = np.flatnonzero(np.bincount(owner, minlength=len(labels)) == 0)
    named = {
        name: labels.take(to_arrow_array(np.concatenate([who, left_out])))
        for name, who in (("owner", owner), ("member", member))
    }
    none = np.zeros(len(left_out), np.int64)
    empty = spread(np.array([len(record), len(left_out)])) == 1
    columns: dict[str, Any] = {"record": pa.array(np.concatenate([record, none]), mask=empty), **named}
    if members.spans is not None:
        always = np.concatenate([member == owner, none == 0])
        for name, slots in zip(_TIMES, members.spans.T, strict=True):
            ms = (slots + np.int64(release.frame.origin_slot)) * (release.frame.slot_s * 1000)
            columns[name] = pa.array(np.concatenate([ms, none]), mask=always).cast(pa.timestamp("ms", "UTC"))
    return pa.table(columns)


def _slots(findings: Findings, table: pa.Table, slot_s: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first and the last slot wholly inside the time of each row; all slots if it has no time."""
    kind, step = pa.timestamp("ms", "UTC"), slot_s * 1000
    try:
        low, high = (_instants(table[name]).cast(kind).to_numpy().astype("datetime64[ms]") for name in _TIMES)
    except pa.ArrowException:
        findings.fail("audit/time-type")
        return np.zeros(len(table), np.int64), np.zeros(len(table), np.int64)
    odd = int((high <= low).sum())  # never true without a time
    findings.fail_if(odd, "audit/reversed-times")
    first, last = -(-low.view(np.int64) // step), high.view(np.int64) // step - 1
    return np.where(np.isnat(low), -_EVER, first), np.where(np.isnat(high), _EVER, last)


def _instants(column: Any) -> Any:
    if not pa.types.is_timestamp(column.type):
        raise pa.ArrowTypeError
    return column


def _table(findings: Findings, audit: str | Path | pa.Table, run: Run) -> pa.Table | None:
    """Read an audit, its numbers as int64 and its labels as text; None, with the failure noted, if it is no audit."""
    table = audit_rows(audit, run)
    names = table.column_names
    if tuple(names[:3]) == _COLUMNS and len(set(names)) == len(names) and pa.types.is_integer(table["record"].type):
        try:
            for place, (name, kind) in enumerate(zip(_COLUMNS, _TYPES, strict=True)):
                table = table.set_column(place, name, table[name].cast(kind))
        except pa.ArrowException:
            pass
        else:
            return table
    findings.fail("audit/columns")
    return None


def audit_rows(audit: str | Path | pa.Table, run: Run = LOCAL) -> pa.Table:
    """Return the rows of an audit, which may be a file; raises CannotCheck (it can't be read), TooLarge (too long)."""
    if isinstance(audit, pa.Table):
        return audit
    try:
        if str(audit).lower().endswith(".csv"):
            types = {"record": pa.int64(), "owner": pa.string(), "member": pa.string()}
            types |= dict.fromkeys(_TIMES, pa.timestamp("ms", "UTC"))
            with open_regular(audit) as raw:
                return pa_csv.read_csv(raw, convert_options=pa_csv.ConvertOptions(column_types=types))
        with open_parquet(audit, dict.fromkeys(_COLUMNS[1:], _MOST_LABEL)) as file:
            run.require_room(_ROW_BYTES * file.metadata.num_rows, "the audit file", "allow more: `memory`")
            return _with_plain_labels(file.read())
    except FileNotFoundError:
        raise CannotCheck(
            f"{Path(str(audit)).name}: there is no such audit file; give the file that `audit` wrote"
        ) from None
    except (OSError, UnicodeError, pa.ArrowException):
        raise CannotCheck("the audit file can't be read; give the file that `audit` wrote") from None


def _with_plain_labels(table: pa.Table) -> pa.Table:
    """Return an audit whose labels are plain text; raises TooLarge if they are far longer than labels are."""
    for name in set(_COLUMNS[1:]) & set(table.column_names):
        labels = unpacked(table[name], _MOST_LABELS + _ROW_BYTES * table.num_rows)
        if labels is None:
            raise TooLarge("the labels of the audit file are too long; give the file that `audit` wrote")
        table = table.set_column(table.schema.get_field_index(name), name, labels)
    return table


def _users(labels: Any, everyone: Any) -> NDArray[np.int64]:
    """Return the index of each label among those of the people inside the claim, -1 for unknown ones."""
    return places_among(labels, everyone.cast(pa.large_string()))


def _positions(numbers: Any, uids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of the record with each number, -1 for unknown and missing ones."""
    return places_among(numbers, to_arrow_array(uids))


def places_among(values: Any, known: Any) -> NDArray[np.int64]:
    """Return the index of each value among the known ones, -1 for others and for missing ones."""
    found: Any = pc.fill_null(pc.index_in(values, value_set=known), scalar_of(-1).cast(pa.int32()))
    return from_arrow_array(found).astype(np.int64)


def _check_rows(findings: Findings, owner: Any, member: Any, record: Any, empty: Any, times: Any) -> None:
    unknown = int(((owner < 0) | (member < 0)).sum())
    findings.fail_if(unknown, "audit/unknown-person")
    stray = int(((record < 0) & ~empty).sum())
    findings.fail_if(stray, "audit/unknown-record")
    width = int(member.max(initial=-1)) + 2  # unknown ones are -1
    pairs = record[~empty] * width + member[~empty]
    twice = len(pairs) - (
        len(distinct(pairs)) if times is None else _stretches(pairs, *(edge[~empty] for edge in times))
    )
    findings.fail_if(twice, "audit/repeated-member")
    odd = int((empty & (owner != member)).sum())
    findings.fail_if(odd, "audit/no-record")


def _stretches(pairs: NDArray[np.int64], first: NDArray[np.int64], last: NDArray[np.int64]) -> int:
    """Count the distinct pairs with their times; a member may have been merged several times."""
    order = np.lexsort((last, first, pairs))
    return int(fresh(pairs[order], first[order], last[order]).sum())


def _check_owners(
    findings: Findings, owner: Any, member: Any, record: Any, empty: Any, people: Crowd, records: Catalogue
) -> None:
    rows = ~empty
    owned = distinct(record[rows] * len(people) + owner[rows])
    present = distinct(record[rows] * len(people) + member[rows])
    outside = len(distinct(np.concatenate([owned, present]))) - len(present)
    findings.fail_if(outside, "audit/owner-not-member")
    owners = np.bincount(owned // len(people), minlength=len(records))
    none, many = int((owners == 0).sum()), int((owners > records.weights).sum())
    fewer = int(((owners > 0) & (owners < records.weights)).sum())
    findings.fail_if(none, "audit/no-owner")
    findings.fail_if(many, "audit/too-many-owners")
    findings.fail_if(fewer, "audit/too-few-owners")
    own = np.bincount(owned % len(people), minlength=len(people))
    unpublished = np.bincount(owner[empty], minlength=len(people))
    missing = int(((own == 0) & (unpublished == 0)).sum())
    findings.fail_if(missing, "audit/missing-person")
    unclear = int(((unpublished > 1) | ((unpublished > 0) & (own > 0))).sum())
    findings.fail_if(unclear, "audit/both-or-twice")
    double = int((own > 1).sum())
    findings.fail_if(double, "truth/several-records")
