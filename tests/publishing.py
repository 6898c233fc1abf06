"""Writing a release as it is, without the check that publishing makes."""

from shoal.publishing.stage import Outputs, stage


def written(release, path, *, seed=None, record=None, **options):
    """Write a release unverified; returns what was published, and under which numbers."""
    with stage(release, Outputs.at(path, **options), seed=seed, record=record) as staged:
        return staged.publish()
