"""Writing a release as it is, without the check that publishing makes; and what a killed run leaves."""

import os

from shoal import private
from shoal.publishing.stage import Outputs, stage


def dead_folder(parent):
    """Make a private folder whose run is gone."""
    folder, lock = private.make(parent)
    os.close(lock)
    return folder


def written(release, path, *, seed=None, record=None, **options):
    """Write a release unverified; returns what was published, and under which numbers."""
    with stage(release, Outputs.at(path, **options), seed=seed, record=record) as staged:
        return staged.publish()
