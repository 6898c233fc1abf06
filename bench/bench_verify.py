"""`shoal verify`, with and without the audit file, against the time that the anonymization took.

    python bench/bench_verify.py [--users 10000,100000,1000000] [--k 2,5] [--folder DIR]

Releases of the method shoal over generated call records, 144 samples a user. A folder that `bench_shoal.py --folder`
filled saves making them again. Each run is a process of its own and reads files only. For "cover" the release is copied
without what shoal says about it: as of another tool's release, all records that cover people two-way are looked for.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

import shoal
from _bench import measured, report, report_run
from bench_shoal import anonymize, files


def nameless(release):
    """Copy a release without its `shoal` object; give the copy's path and, from the object, the projection."""
    source, bare = pq.ParquetFile(release), release.with_suffix(".bare.parquet")
    said = json.loads(source.schema_arrow.metadata[b"shoal"])
    with pq.ParquetWriter(bare, source.schema_arrow.remove_metadata()) as writer:
        for batch in source.iter_batches(1 << 20):
            writer.write_batch(batch.replace_schema_metadata(None))
    return bare, said["crs"]


def child(path, release, audit, k, crs):
    grid = {"crs": crs, "cell_m": 100, "slot_s": 60, "claim": shoal.Claim("cover", k=int(k))} if crs else {}
    begun = time.perf_counter()
    verdict = shoal.verify(path, release, k=int(k), audit=audit or None, **grid)
    report_run(time.perf_counter() - begun, ok=verdict.ok)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", default="10000,100000,1000000")
    parser.add_argument("--k", default="2,5")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--child", nargs=5)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.folder or Path(temporary)
        for k in map(int, arguments.k.split(",")):
            for users in map(int, arguments.users.split(",")):
                path, release, audit, figures = files(folder, users, k)
                made = json.loads(figures.read_text()) if release.exists() else anonymize(folder, users, k)
                bare, crs = nameless(release)
                ways = {
                    "with audit": (release, audit, k, ""),
                    "without": (release, "", k, ""),
                    "cover": (bare, "", k, crs),
                }
                for way, given in ways.items():
                    run = measured(__file__, "--child", path, *given)
                    rows.append({"k": k, "users": f"{users:,}", "anonymized in": f"{made['seconds']:.0f} s"})
                    rows[-1] |= {"verified": way, "holds": run["ok"], "in": f"{run['seconds']:.0f} s"}
                    rows[-1] |= {"ratio": f"{run['seconds'] / made['seconds']:.2f}"}
                    rows[-1] |= {"peak": f"{run['peak_gb']:.1f} GB"}
                    print(rows[-1], flush=True)
    report("verify", rows)


if __name__ == "__main__":
    main()
