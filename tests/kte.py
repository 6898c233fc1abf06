"""Releases for windows made by hand: hiding sets per epoch, merged within the epoch."""

import random
from dataclasses import dataclass, field

import pyarrow as pa

import shoal
from tests.releases import FRAME, NOON, TIME, Draft, Record, people_of, samples_of

EPOCH = 6  # slots


@dataclass
class Hidden(Draft):
    """A draft whose members were merged for some time only: `merged[owner]` lists (member, first slot, last slot)."""

    merged: dict = field(default_factory=dict)

    def audit(self):
        labels = self.people.labels.cast(pa.string()).to_pylist()
        rows = []
        for number, record in zip(self.numbers or range(len(self.records)), self.records, strict=True):
            rows.append((number, labels[record.owner], labels[record.owner], None, None))
            rows += [(number, labels[record.owner], labels[m], a, b + 1) for m, a, b in self.merged[record.owner]]
        owners = {record.owner for record in self.records}
        rows += [(None, label, label, None, None) for user, label in enumerate(labels) if user not in owners]
        record, owner, member, start, end = zip(*self.edit_audit(rows), strict=True)
        slot_ms = self.people.frame.slot_s * 1000

        def instants(slots):
            return pa.array([None if slot is None else slot * slot_ms for slot in slots], pa.int64()).cast(TIME)

        columns = {"record": pa.array(record, pa.int64()), "owner": list(owner), "member": list(member)}
        return pa.table({**columns, "t_start": instants(start), "t_end": instants(end)})


def walkers(users=24, epochs=8, seed=1, per_epoch=3, frame=FRAME):
    """Return people who are in one of two towns in every epoch: in that of bit `epoch % 3` of their label."""
    draw = random.Random(seed)
    lists = []
    for label in range(users):
        own = set()
        for epoch in range(epochs):
            for _ in range(draw.randrange(1, per_epoch + 1)):
                slot = NOON + epoch * EPOCH + draw.randrange(EPOCH)
                own.add((slot, 1000 * town(label, epoch) + draw.randrange(10), draw.randrange(10)))
        lists.append(sorted(own))
    order = draw.sample(range(users), users)
    return people_of([lists[label] for label in order], labels=order, frame=frame)


def town(label, epoch):
    return label >> (epoch % 3) & 1


def hiding(people, k, *, r=1, epochs=8, same=False):
    """Return the hiding sets: (window m, user) to k−1 others who are in the same towns during epochs m and m+1.

    Of those whom a set hides, some are in another town before and after; with `same`, all sets are those of one
    window, among people who are always together.
    """
    labels = people.labels.to_pylist()
    sets = {}
    for m in range(-r, epochs):
        groups = {}
        for user, label in enumerate(labels):
            path = (town(label, 0), town(label, 1), town(label, 2)) if same else (town(label, m), town(label, m + 1))
            groups.setdefault(path, []).append(user)
        for group in groups.values():
            sides = [[user for user in group if town(labels[user], m + 2) == side] for side in (0, 1)]
            ring = group if same else [user for pair in zip(*sides, strict=True) for user in pair]
            for place, user in enumerate(ring):
                sets[m, user] = [ring[(place + step) % len(ring)] for step in range(1, k)]
    return sets


def hide(people, k, *, r=1, epochs=8, same=False, seed=3, cut=0, sets=None):
    """Return a release in which everybody is hidden by k−1 others in each window of r+1 epochs.

    `cut` takes the last slots of each hiding set's time away (an error at the boundary of epochs).
    """
    sets = sets or hiding(people, k, r=r, epochs=epochs, same=same)
    merged = {user: [] for user in range(len(people))}
    for (m, user), others in sets.items():
        first, last = NOON + max(0, m) * EPOCH, NOON + min(epochs, m + r + 1) * EPOCH - 1 - cut
        merged[user] += [(other, first, last) for other in others if first <= last]
    everyone = [samples_of(people, user) for user in range(len(people))]
    records = []
    for user in range(len(people)):
        boxes = []
        for epoch in range(epochs):
            begin, end = NOON + epoch * EPOCH, NOON + (epoch + 1) * EPOCH - 1
            own = {user: (begin, end)}
            for member, first, last in merged[user]:
                if first <= end and begin <= last:
                    low, high = own.get(member, (begin, begin - 1))
                    own[member] = (min(low, max(begin, first)), max(high, min(end, last)))
            lists = [[s for s in everyone[member] if a <= s[0] <= b] for member, (a, b) in own.items()]
            lists = [samples for samples in lists if samples]
            if lists and any(begin <= s[0] <= end for s in everyone[user]):
                boxes += shoal.k_merge(lists, "members")[0].tolist()
        records.append(Record(user, [user], boxes))
    random.Random(seed).shuffle(records)
    tau_s, epsilon_s = r * EPOCH * people.frame.slot_s, EPOCH * people.frame.slot_s
    claim = {"name": "kte-anonymity", "k": k, "tau_s": tau_s, "epsilon_s": epsilon_s}
    return Hidden(people, records, claim, k, merged=merged)
