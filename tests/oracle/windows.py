"""Windows and leakage the slow and obvious way: every window, every record, every sample."""

from tests.oracle.cover import holds, two_way


def fits(record, samples, begin, end):
    """Whether a record holds all samples within begin…end (slots) and has no box wholly inside without one of them."""
    inside = [sample for sample in samples if begin <= sample[0] <= end]
    held = all(any(holds(box, sample) for box in record) for sample in inside)
    within = [box for box in record if begin <= box[0] and box[1] <= end]
    return held and all(any(holds(box, sample) for sample in inside) for box in within)


def people_of_records(users, records):
    """Return the distinct records, each with the people it counts for: no more than it covers from end to end."""
    distinct = [record for place, record in enumerate(records) if record not in records[:place]]
    return [(r, min(records.count(r), sum(two_way(samples, r) for samples in users))) for r in distinct]


def leakage(samples, fitting, begin, end):
    """Return how far beyond the window what all records hold reaches without a break, and how many samples that is."""

    def told(sample):
        return bool(fitting) and all(any(holds(box, sample) for box in record) for record in fitting)

    before = [sample for sample in samples if sample[0] < begin]
    after = [sample for sample in samples if sample[0] > end]
    reach = 0
    for sample in after:
        if not told(sample):
            break
        reach = max(reach, sample[0] - end)
    for sample in reversed(before):
        if not told(sample):
            break
        reach = max(reach, begin - sample[0])
    return reach, sum(map(told, before + after)), len(before) + len(after)


def look_through(users, records, length, k):
    """Return all there is to know about windows of `length` slots; users are lists of samples, records of boxes."""
    weighed = people_of_records(users, records)
    answer = {"counts": [], "least": [], "short": 0, "ending_short": 0, "leaks": {}, "outside": 0, "told": 0}
    for user in users:
        samples = sorted(user)
        least = None
        starts = sorted({sample[0] for sample in samples})
        ends = [t - length + 1 for t in starts if t - length + 1 not in starts]
        for begin in starts + ends:
            end = begin + length - 1
            fitting = [(r, people) for r, people in weighed if people and fits(r, samples, begin, end)]
            people = sum(people for _, people in fitting)
            if begin in starts:
                answer["counts"].append(people)
                least = people if least is None else min(least, people)
                answer["short"] += people < k
            else:
                answer["ending_short"] += people < k
            reach, told, outside = leakage(samples, [r for r, _ in fitting], begin, end)
            answer["leaks"][reach] = answer["leaks"].get(reach, 0) + 1
            answer["told"] += told
            answer["outside"] += outside
        answer["least"].append(least)
    return answer
