"""Truth: nothing created, nothing lost that is not counted, every box about every member of its record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shoal.verifier.pairs import hold

if TYPE_CHECKING:
    from shoal.verifier.audit import Witnesses
    from shoal.verifier.original import Original
    from shoal.verifier.records import Records
    from shoal.verifier.verdict import Findings

__all__ = ["check_boxes", "check_members"]


def check_boxes(findings: Findings, records: Records) -> None:
    """Check, without an audit, that every record has boxes, sorted and disjoint in time."""
    broken = int((~records.sound).sum())
    findings.fail_if(
        broken, "truth", f"{broken:,} records have no box, an empty box, or boxes that overlap or are unsorted in time."
    )


def check_members(
    findings: Findings,
    people: Original,
    records: Records,
    witnesses: Witnesses,
    *,
    declared: int,
    tolerance: float,
    max_suppressed: float,
) -> tuple[Original, Witnesses]:
    """Check truth of level `member`, and suppression, with the members that an audit names.

    Every box of a record holds a sample of every member, and every sample of a member that was not suppressed is
    in a box (in one only, since boxes are disjoint). A sample that none of the user's records holds is
    suppressed; held by some only is a failure. `declared` is the count that was stated, within `tolerance`: if it
    is 0, a sample that no record holds is lost, not suppressed. Gives the people with their published samples
    and the witnesses with the outcome for each pair.
    """
    held = hold(people, records, witnesses.users, witnesses.records)
    claimed = np.bincount(witnesses.users, minlength=len(people))[people.owners]
    mixed = int(((held.tally > 0) & (held.tally < claimed)).sum())
    none = held.tally == 0
    published = people
    if declared != 0:
        published = people.keep(~none)
    suppressed = len(people.t) - len(published.t)
    _check_share(findings, suppressed, len(people.t), declared, tolerance, max_suppressed)
    findings.fail_if(mixed, "suppression", f"{mixed:,} samples are held by some of their user's records only.")
    findings.figures["mixed_samples"] = mixed
    whole = held.samples == published.counts[witnesses.users]
    true = held.boxes == records.counts[witnesses.records]
    lost, created = int((~whole).sum()), int((~true).sum())
    findings.fail_if(lost, "truth", f"{lost:,} members have samples that their record does not hold.")
    findings.fail_if(created, "truth", f"{created:,} members have no sample in a box of their record.")
    return published, witnesses.checked(whole & true)


def _check_share(
    findings: Findings, suppressed: int, samples: int, declared: int, tolerance: float, limit: float
) -> None:
    share = suppressed / samples if samples else 1.0
    findings.figures["suppressed_samples"] = suppressed
    findings.figures["suppressed_share"] = round(share, 6)
    findings.fail_if(
        share > limit, "suppression", f"{share:.1%} of the samples were suppressed; at most {limit:.0%} are accepted."
    )
    findings.fail_if(suppressed == samples, "suppression", "Nothing of the original was published.")
    wrong = abs(suppressed - declared) > tolerance
    findings.fail_if(wrong, "suppression", "The number of suppressed samples is not the one that was stated.")
