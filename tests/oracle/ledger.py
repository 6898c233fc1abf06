"""People in several releases, with dictionaries."""


def hidden_among(releases):
    """For each person of the last release who is in an earlier one: how many share her group in all she is in.

    A release maps people to groups, or to None where there are no identical groups. Only people who are in the
    same releases as she can be taken for her; where a release has no groups, only she herself.
    """
    *earlier, new = releases
    found = {}
    for person in new:
        hers = [release for release in earlier if person in release]
        if not hers:
            continue
        found[person] = sum(
            all(
                (other in release) == (person in release)
                and (person not in release or other == person or alike(release, person, other))
                for release in [*earlier, new]
            )
            for other in new
        )
    return found


def alike(release, one, other):
    return release[one] is not None and release[one] == release[other]
