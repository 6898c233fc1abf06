"""Writing a release as it is, without the check that publishing makes."""

from pathlib import Path

from shoal.publishing.stage import Outputs, stage


def written(release, path, *, seed=None, record=None, **options):
    """Write a release unverified; returns what was published, and under which numbers."""
    files = {name: Path(value) if name in ("audit", "run_record") else value for name, value in options.items()}
    outputs = Outputs(Path(path), **files)
    with stage(release, outputs, seed=seed, record=record) as staged:
        return staged.publish(overwrite=outputs.overwrite)
