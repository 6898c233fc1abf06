"""Cover counted the slow and obvious way: users × records × samples × boxes."""


def holds(box, sample):
    """Whether a box (t0, t1, x0, x1, y0, y1), inclusive, holds a sample (t, x, y)."""
    t0, t1, x0, x1, y0, y1 = box
    t, x, y = sample
    return t0 <= t <= t1 and x0 <= x <= x1 and y0 <= y <= y1


def one_way(samples, record):
    """Whether a record holds each of the samples (the papers' notion of cover)."""
    return all(any(holds(box, sample) for box in record) for sample in samples)


def two_way(samples, record):
    """Whether a record holds each of the samples and each of its boxes holds one of them."""
    return one_way(samples, record) and all(any(holds(box, sample) for sample in samples) for box in record)


def count_cover(users, records, rule=two_way):
    """Count, for each user (a list of samples), the people that the records (lists of boxes) covering her stand for.

    Identical records can't be more people than they cover two-way: more are copies. One-way, each one counts.
    """
    counts = [0] * len(users)
    for record in [record for place, record in enumerate(records) if record not in records[:place]]:
        covers = [rule(samples, record) for samples in users]
        alike = records.count(record)
        people = alike if rule is one_way else min(alike, sum(covers))
        counts = [count + people * covered for count, covered in zip(counts, covers, strict=True)]
    return counts


def count_members(users, records):
    """Count, for each distinct record in order of appearance, the users it covers two-way."""
    distinct = [record for place, record in enumerate(records) if record not in records[:place]]
    return [sum(two_way(samples, record) for samples in users) for record in distinct]
