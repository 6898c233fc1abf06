"""What `--geo` costs: the size of the file, the time to write it and to verify it, with and without polygons.

    python bench/bench_geo.py [--users 100000,1000000] [--samples 20] [--k 0] [--folder DIR]

Releases over generated call records: of the method uniform (1 km, 1 h), which takes no time, or with `--k` of shoal,
whose boxes differ more. Each run is a process of its own; seconds are those of the processor, compiling included.
"""

import argparse
import tempfile
import time
from pathlib import Path

import shoal
from _bench import measured, report, report_run
from shoal.publishing.stage import Outputs, stage
from shoal.synth import synthesize


def write(people, path, k, *, geo):
    """Make a release and write it, without the check; report what the writing took."""
    method = shoal.Shoal(k=k) if k else shoal.Uniform(to_cell="1km", to_slot="1h")
    release = method.anonymize(shoal.read(people))
    begun = time.process_time()
    with stage(release, Outputs(path, overwrite=True, geo=geo)) as staged:
        staged.publish()
    report_run(time.process_time() - begun, boxes=len(release.boxes))


def verify(people, path):
    begun = time.process_time()
    verdict = shoal.verify(people, path)
    report_run(time.process_time() - begun, ok=verdict.ok)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", default="100000,1000000")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--k", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--child", nargs=4)
    arguments = parser.parse_args()
    if arguments.child:
        what, people, path, k = arguments.child
        if what == "verify":
            verify(people, path)
        else:
            write(people, Path(path), int(k), geo=what == "geo")
        return
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        for users in map(int, arguments.users.split(",")):
            people = folder / f"people-{users}.parquet"
            if not people.exists():
                synthesize(people, users=users, seed=1, samples=arguments.samples)
            for what in ("plain", "geo"):
                path = folder / f"{what}-{users}.parquet"
                written = measured(__file__, "--child", what, people, path, arguments.k)
                checked = measured(__file__, "--child", "verify", people, path, arguments.k)
                rows.append({"users": f"{users:,}", "boxes": f"{written['boxes'] / 1e6:.1f} M", "file": what})
                rows[-1] |= {
                    "size": f"{path.stat().st_size / 1e6:,.0f} MB",
                    "written in": f"{written['seconds']:.1f} s",
                }
                rows[-1] |= {"verified in": f"{checked['seconds']:.1f} s", "holds": checked["ok"]}
                rows[-1] |= {"peak": f"{max(written['peak_gb'], checked['peak_gb']):.1f} GB"}
                print(rows[-1], flush=True)
    report("geo", rows)


if __name__ == "__main__":
    main()
