"""Promesse against the bare work around it: reading the input and writing the output.

    SHOAL_DATA=… python bench/bench_promesse.py [--step 200m] [--repeats 3] [--threads 2] [--input FILE --tz ZONE]

The whole command, from the start of Python to the manifest (read, smooth, write, sync, verify from the file, publish),
against a plain read of the same input and a plain write of the same rows by Arrow, each in a process of its own, in
turns, best of several. Reach: at most 2.5 times. Without SHOAL_DATA, generated GPS fixes are taken.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _bench import measured, report, report_run


def run_bare(source, made):
    """Read the input and write the rows of the release, as bare as it gets."""
    import pyarrow.parquet as pq

    rows = pq.read_table(made).replace_schema_metadata(None)
    start = time.perf_counter()
    table = pq.read_table(source)
    middle = time.perf_counter()
    pq.write_table(rows, made.with_name("bare.parquet"), compression="zstd")
    end = time.perf_counter()
    report_run(end - start, read=middle - start, write=end - middle, rows=len(table), points=len(rows))


def run_whole(source, folder, arguments):
    """Run the command as a user does; give its seconds and its peak of memory."""
    import resource

    command = [
        sys.executable,
        "-m",
        "shoal.cli",
        "anonymize",
        source,
        folder / "made.parquet",
        "--overwrite",
        "--quiet",
    ]
    command += ["--method", "promesse", "--step", arguments.step, "--split-gap", "4h", "--tz", arguments.tz]
    start = time.perf_counter()
    subprocess.run([*map(str, command), "--threads", str(arguments.threads)], check=True, capture_output=True)
    seconds = time.perf_counter() - start
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e9


def source_of(arguments, folder):
    if arguments.input is not None:
        return arguments.input
    if os.environ.get("SHOAL_DATA"):
        return Path(os.environ["SHOAL_DATA"]) / "tdrive.parquet"
    import shoal

    shoal.synthesize(folder / "gps.parquet", users=2_000, kind="gps", days=14, seed=1)
    return folder / "gps.parquet"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--step", default="200m")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--input", type=Path)
    parser.add_argument("--tz", default="Asia/Shanghai")
    parser.add_argument("--bare", nargs=2, type=Path, metavar=("INPUT", "MADE"), help="one bare run, in this process")
    arguments = parser.parse_args()
    if arguments.bare:
        run_bare(*arguments.bare)
        return
    whole, bare, peak = float("inf"), None, 0.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = source_of(arguments, folder)
        run_whole(source, folder, arguments)  # compiles what is not compiled yet
        for _ in range(arguments.repeats):
            seconds, peak_gb = run_whole(source, folder, arguments)
            whole, peak = min(whole, seconds), max(peak, peak_gb)
            run = measured(__file__, "--bare", source, folder / "made.parquet")
            bare = run if bare is None or run["seconds"] < bare["seconds"] else bare
        size = (folder / "made.parquet").stat().st_size
    rows = [
        {"what": "bare read", "seconds": f"{bare['read']:.2f}", "against bare": ""},
        {"what": "bare write", "seconds": f"{bare['write']:.2f}", "against bare": ""},
        {"what": "bare read + write", "seconds": f"{bare['seconds']:.2f}", "against bare": "1.00"},
        {"what": "whole command", "seconds": f"{whole:.2f}", "against bare": f"{whole / bare['seconds']:.2f}"},
    ]
    facts = {"fixes": bare["rows"], "points": bare["points"], "step": arguments.step, "threads": arguments.threads}
    report("promesse", rows, facts={**facts, "output MB": size / 1e6, "peak GB": peak})


if __name__ == "__main__":
    main()
