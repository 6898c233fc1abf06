"""The figures of a release, sample by sample: slow and obvious."""

import statistics


def who_owns(release):
    """Every (record, user) that may be owner and record, each equally likely for the user."""
    members = release.members
    if members.matchings is None:
        return list(enumerate(members.owners.tolist()))
    return [(record, user) for record, users in enumerate(members.matchings.tolist()) for user in users]


def box_of(boxes, sample):
    t, x, y = sample
    holding = [b for b in boxes if b[0] <= t <= b[1] and b[2] <= x <= b[3] and b[4] <= y <= b[5]]
    assert len(holding) <= 1
    return holding[0] if holding else None


def slow_precision(release):
    people = release.members.people
    cell_km, slot_min = release.frame.cell_m / 1000, release.frame.slot_s / 60
    spans, durations, owner_costs = [], [], []
    for record, user in who_owns(release):
        costs = []
        for sample in people.user(user).tolist():
            box = box_of(release.record(record).tolist(), sample)
            if box is None:
                continue
            t0, t1, x0, x1, y0, y1 = box
            dt, dx, dy = t1 - t0 + 1, x1 - x0 + 1, y1 - y0 + 1
            costs.append(dt * (dx + dy))
            spans.append((dx + dy) / 2 * cell_km)
            durations.append(dt * slot_min)
        if costs:
            owner_costs.append(sum(costs) / len(costs))
    records_a_user = 1 if release.members.matchings is None else release.members.matchings.shape[1]
    return {
        "owner_cost": statistics.mean(owner_costs),
        "span_km_mean": statistics.mean(spans),
        "span_km_median": statistics.median(spans),
        "duration_min_mean": statistics.mean(durations),
        "duration_min_median": statistics.median(durations),
        "suppressed": 1 - len(spans) / (records_a_user * people.samples),
    }
