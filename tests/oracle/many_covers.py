"""Cover counts by brute force over all boxes, user after user, sample after sample."""

import numpy as np


def cover_counts(people, release):
    """For every user the number of records that hold each of her samples and of which every box holds one."""
    record_of = np.repeat(np.arange(len(release)), np.diff(release.offsets))
    sizes = np.diff(release.offsets)
    shift = people.frame.origin_slot - release.frame.origin_slot
    counts = []
    for u in range(len(people)):
        alive = np.arange(len(release.boxes))
        hit = np.zeros(len(release.boxes), bool)
        for t, x, y in people.user(u).astype(np.int64):
            t0, t1, x0, x1, y0, y1 = release.boxes[alive].T
            inside = (t0 <= t + shift) & (t + shift <= t1) & (x0 <= x) & (x <= x1) & (y0 <= y) & (y <= y1)
            hit[alive[inside]] = True
            alive = alive[np.isin(record_of[alive], record_of[alive[inside]])]
        held = np.unique(record_of[alive])
        counts.append(sum(hit[release.offsets[r] : release.offsets[r + 1]].sum() == sizes[r] for r in held))
    return counts
