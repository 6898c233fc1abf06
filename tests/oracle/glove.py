"""GLOVE as written (GLOVE, Sec. 6, Alg. 1): every pair compared anew, exact fractions, no index.

People are lists of samples (t, x, y), in canonical order; a group is a Group. A group's place in the canonical order is
that of its first member, so pairs are ordered by (effort to 1e-12, first member of the one, of the other).
"""

from typing import NamedTuple

from shoal.merge import k_merge
from tests.oracle.merge import box_of
from tests.oracle.stretch import PAPER, as_boxes, effort, first_is_longer, nearest


class Group(NamedTuple):
    """Who is in it (ascending), and the boxes (t0, t1, x0, x1, y0, y1) that stand for all of them."""

    members: tuple
    boxes: list


def rounded(value):
    """What ties are judged by: the effort as a double, to 1e-12."""
    return round(float(value) * 1e12)


def glove(people, k, *, variant="strict", merge="k-merge", terms=PAPER, effort=effort):
    """The groups of at least k, and the people who are left (strict only). `effort` may be a faster one."""
    there = [Group((user,), as_boxes(samples)) for user, samples in enumerate(people)]  # lines 1-2
    known = {}

    def distance(a, b):  # S of lines 4 and 16: the same pair of groups always has the same effort
        if (a.members, b.members) not in known:
            found = effort(a.boxes, b.boxes, len(a.members), len(b.members), terms=terms)
            known[a.members, b.members] = rounded(found)
        return known[a.members, b.members]

    while True:
        there.sort()
        small = [len(group.members) < k for group in there]
        pairs = [
            (distance(there[i], there[j]), there[i].members[0], there[j].members[0], i, j)
            for i in range(len(there))
            for j in range(i + 1, len(there))
            if (small[i] and small[j] if variant == "strict" else small[i] or small[j])
        ]
        if not pairs:  # line 7
            break
        *_, i, j = min(pairs)  # line 8
        a, b = there[i], there[j]
        there = [group for group in there if group not in (a, b)] + [merged(a, b, people, merge, terms)]  # 9-13
    done = [group for group in there if len(group.members) >= k]
    return done, sorted(user for group in there if len(group.members) < k for user in group.members)  # line 20


def merged(a, b, people, merge, terms=PAPER):
    """Lines 10-12."""
    members = tuple(sorted(a.members + b.members))
    trajectories = [people[user] for user in members]
    if merge == "k-merge":
        boxes, _ = k_merge(trajectories, "members")
        return Group(members, [tuple(box) for box in boxes.tolist()])
    pieces = reshape(two_stage(a.boxes, b.boxes, len(a.members), len(b.members), terms))
    times = [t for samples in trajectories for t, _, _ in samples]
    return Group(members, [box for box in pieces if any(box[0] <= t <= box[1] for t in times)])


def two_stage(a, b, n_a=1, n_b=1, terms=PAPER):
    """`mergeTrajectories` (Sec. 6.2); the box that stage A makes stands for both groups."""
    if not first_is_longer(a, b):
        a, b, n_a, n_b = b, a, n_b, n_a
    matched = {}
    for box in a:  # stage A
        matched.setdefault(nearest(box, b, n_a, n_b, terms), []).append(box)
    boxes = sorted(union([b[j], *with_it]) for j, with_it in matched.items())
    more = {}
    for j, box in enumerate(b):  # stage B
        if j not in matched:
            more.setdefault(nearest(box, boxes, n_b, n_a + n_b, terms), []).append(box)
    return sorted(union([box, *more.get(i, [])]) for i, box in enumerate(boxes))


def union(boxes):
    """Eq. 12-13."""
    corners = [corner for t0, t1, x0, x1, y0, y1 in boxes for corner in ((t0, x0, y0), (t1, x1, y1))]
    return box_of(corners)


def reshape(boxes):
    """`reshapeTrajectory`: slots in a row that the same boxes cover become one box, as wide as these together."""
    pieces = []
    slots = sorted({t for box in boxes for t in range(box[0], box[1] + 1)})
    before = None
    for t in slots:
        cover = [n for n, box in enumerate(boxes) if box[0] <= t <= box[1]]
        if before == (t - 1, cover):
            pieces[-1][1] = t
        else:
            _, _, *space = union([boxes[n] for n in cover])
            pieces.append([t, t, *space])
        before = (t, cover)
    return [tuple(piece) for piece in pieces]
