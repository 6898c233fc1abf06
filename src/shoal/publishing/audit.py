"""The private audit table: who is in which record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from shoal.arrow import to_arrow_array

if TYPE_CHECKING:
    from shoal.release import Members, Release

__all__ = ["audit_table"]


def audit_table(release: Release, members: Members | None = None) -> pa.Table | None:
    """Return the table of who is in which record (record, owner, member), labels as strings; None if unknown.

    `members` are those of the release, unless its records are published in another order.
    Users who are in no record at all have one row with `record` null. Where users were merged for some time only,
    `t_start` and `t_end` say when; they are null for the owner.
    """
    members = members or release.members
    if members is None:
        return None
    labels = members.people.labels.cast(pa.string())
    record = np.repeat(np.arange(len(release)), np.diff(members.offsets))
    owner = members.owners[record]
    if release.multiplicity is not None:
        owner = members.indices
    missing = np.setdiff1d(np.arange(len(labels)), owner)
    none = pa.nulls(len(missing), pa.int64())
    columns: dict[str, Any] = {
        "record": pa.chunked_array([to_arrow_array(record), none]),
        "owner": labels.take(to_arrow_array(np.concatenate([owner, missing]))),
        "member": labels.take(to_arrow_array(np.concatenate([members.indices, missing]))),
    }
    if members.spans is not None:
        always = np.concatenate([members.indices == owner, np.ones(len(missing), dtype=bool)])
        for name, edge in zip(("t_start", "t_end"), members.spans.T, strict=True):
            instant = np.concatenate([release.frame.epoch_s(edge) * 1000, np.zeros(len(missing), np.int64)])
            columns[name] = pa.array(instant, mask=always).cast(pa.timestamp("ms", "UTC"))
    return pa.table(columns)
