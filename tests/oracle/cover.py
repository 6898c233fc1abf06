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
    """Count, for each user (a list of samples), the records (lists of boxes) that cover her."""
    return [sum(rule(samples, record) for record in records) for samples in users]
