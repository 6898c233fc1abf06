"""Attacks by plain loops. People are lists of samples (t, x, y); a record is (boxes, people published as it)."""

from collections import Counter
from datetime import UTC, datetime
from itertools import pairwise
from zoneinfo import ZoneInfo


def holds(box, sample):
    t0, t1, x0, x1, y0, y1 = box
    t, x, y = sample
    return t0 <= t <= t1 and x0 <= x <= x1 and y0 <= y <= y1


def is_sound(boxes):
    full = all(box[0] <= box[1] and box[2] <= box[3] and box[4] <= box[5] for box in boxes)
    return bool(boxes) and full and all(a[1] < b[0] for a, b in pairwise(boxes))


def fits(boxes, known):
    return bool(known) and is_sound(boxes) and all(any(holds(box, sample) for box in boxes) for sample in known)


def candidates(records, known):
    """The numbers of the records that hold everything known."""
    return [number for number, (boxes, _) in enumerate(records) if fits(boxes, known)]


def count(records, numbers):
    return sum(records[number][1] for number in numbers)


def raw_candidates(people, known):
    return [user for user, samples in enumerate(people) if known and set(known) <= set(samples)]


def as_records(people):
    """Raw data as records of one-granule boxes; none of them unsound for having two samples in a slot."""
    return [([(t, t, x, x, y, y) for t, x, y in samples], 1) for samples in people]


def in_window(samples, first, last):
    return [sample for sample in samples if first <= sample[0] <= last]


def window_candidates(records, known, first, last):
    """Those that hold everything known, and have no box wholly inside the window without any of it."""
    found = []
    for number in candidates(records, known):
        inside = [box for box in records[number][0] if first <= box[0] and box[1] <= last]
        if all(any(holds(box, sample) for sample in known) for box in inside):
            found.append(number)
    return found


def raw_window_candidates(people, known, first, last):
    return [user for user, samples in enumerate(people) if in_window(samples, first, last) == sorted(known)]


def beyond(samples, first, last, held_by_all):
    """The share of samples outside the window held by all, and how far the unbroken run reaches on the better side."""
    outside = [sample for sample in samples if not first <= sample[0] <= last]
    reach = 0
    for sample in (s for s in outside if s[0] > last):
        if not held_by_all(sample):
            break
        reach = max(reach, sample[0] - last)
    for sample in reversed([s for s in outside if s[0] < first]):
        if not held_by_all(sample):
            break
        reach = max(reach, first - sample[0])
    return sum(map(held_by_all, outside)) / len(outside), reach


def hull(boxes):
    return [choose(box[edge] for box in boxes) for edge, choose in enumerate((min, max) * 3)]


def top_cells(samples, most):
    """The cells with most samples, equal ones by x and y."""
    visits = Counter((x, y) for _, x, y in samples)
    return sorted(visits, key=lambda cell: (-visits[cell], cell))[:most]


def place_candidates(records, cells):
    found = []
    for number, (boxes, _) in enumerate(records):
        flat = [(0, 0, *box[2:]) for box in boxes]
        if is_sound(boxes) and all(any(holds(box, (0, *cell)) for box in flat) for cell in cells):
            found.append(number)
    return found


def local_hour(t, slot_s, tz):
    return datetime.fromtimestamp(t * slot_s, UTC).astimezone(ZoneInfo(tz)).hour


def at_night(hour):
    return hour >= 22 or hour < 6


def at_work(hour):
    return 9 <= hour < 17


def home_and_work(samples, slot_s, tz):
    """The cells with most samples by night and in office hours, None where there are no samples."""
    places = []
    for when in (at_night, at_work):
        there = [sample for sample in samples if when(local_hour(sample[0], slot_s, tz))]
        places.append(top_cells(there, 1)[0] if there else None)
    return places


def home_work_candidates(records, known, slot_s, tz, period):
    """The records with a box around each known place that has a slot of its hours (known: pairs of hours, cell)."""
    found = []
    for number, (boxes, _) in enumerate(records):

        def at(when, cell, boxes=boxes):
            return any(
                holds((0, 0, *box[2:]), (0, *cell))
                and any(
                    when(local_hour(t, slot_s, tz)) for t in range(max(box[0], period[0]), min(box[1], period[1]) + 1)
                )
                for box in boxes
            )

        if is_sound(boxes) and all(at(when, cell) for when, cell in known):
            found.append(number)
    return found


def meet(one, other):
    """Whether two boxes, half-open, in seconds and metres, have anything in common."""
    return all(max(one[low], other[low]) < min(one[low + 1], other[low + 1]) for low in (0, 2, 4))


def may_be_one(one, other, start, end):
    """Whether every box of each record in the period meets one of the other."""
    return all(
        any(meet(box, theirs) for theirs in b)
        for a, b in ((one, other), (other, one))
        for box in a
        if start <= box[0] and box[1] <= end
    )


def people_left(first, second, links):
    """Clusters of linked candidates, each as many people as its smaller side; first and second map number to people."""
    nodes = {("a", n): {("b", m) for i, m in links if i == n} for n in first}
    nodes |= {("b", m): {("a", n) for n, j in links if j == m} for m in second}
    total, seen = 0, set()
    for node in nodes:
        if node in seen:
            continue
        cluster, todo = set(), [node]
        while todo:
            here = todo.pop()
            if here not in cluster:
                cluster.add(here)
                todo += nodes[here]
        seen |= cluster
        total += min(
            sum(first[n] for side, n in cluster if side == "a"), sum(second[n] for side, n in cluster if side == "b")
        )
    return total
