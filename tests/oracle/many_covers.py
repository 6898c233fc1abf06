"""Cover counts by brute force over all boxes, user after user, sample after sample."""

import numpy as np


def cover_counts(people, release):
    """For every user the number of records that hold each of her samples and of which every box holds one."""
    record_of = np.repeat(np.arange(len(release)), np.diff(release.offsets))
    shift = people.frame.origin_slot - release.frame.origin_slot
    columns = np.ascontiguousarray(release.boxes.T)
    counts = []
    for u in range(len(people)):
        t0, t1, x0, x1, y0, y1 = columns
        box, of = np.arange(len(record_of)), record_of
        hit = np.zeros(len(record_of), bool)
        for t, x, y in people.user(u).tolist():
            inside = (t0 <= t + shift) & (t + shift <= t1)
            inside &= (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)
            hit[box[inside]] = True
            holds = np.zeros(len(release), bool)
            holds[of[inside]] = True
            still = holds[of]
            if not still.all():
                box, of, t0, t1, x0, x1, y0, y1 = (a[still] for a in (box, of, t0, t1, x0, x1, y0, y1))
        missed = np.unique(of[~hit[box]])
        counts.append(len(np.setdiff1d(of, missed)))
    return counts
