"""Reading against the bare engines: the same read + sort by user and time + arithmetic, and their write.

    python bench/bench_read.py [--rows 20000000] [--users 50000] [--repeats 3] [--threads 2]

Rows are generated in no order. The engines project linearly and write Parquet; shoal projects with PROJ, cleans,
merges duplicates and brings users into canonical order. Each run is a process of its own that does the work twice;
processes run in turns, best of several.
Reach: at most 1.5 times DuckDB's time for Parquet, 2 times for CSV, at most 8 GB.
"""

import argparse
import tempfile
import time
from pathlib import Path

from _bench import measured, report, report_run
from shoal.run import Run

ROWS = """
    SELECT CAST(hash(i) % {users} AS INTEGER) AS uid,
        TIMESTAMP '2026-03-01' + to_seconds(CAST(hash(i * 7 + 1) % 1209600 AS INTEGER)) AS datetime,
        round(39.9 + (hash(i * 3 + 5) % 1000000 / 1e6 - 0.5) * 0.6, 6) AS lat,
        round(116.4 + (hash(i * 11 + 2) % 1000000 / 1e6 - 0.5) * 0.8, 6) AS lng
    FROM range({rows}) AS r(i)
"""


def generate(folder, rows, users):
    import duckdb

    with duckdb.connect() as connection:
        query = ROWS.format(rows=rows, users=users)
        connection.execute(f"COPY ({query}) TO '{folder}/in.parquet' (COMPRESSION zstd)")
        connection.execute(f"COPY (SELECT * FROM '{folder}/in.parquet') TO '{folder}/in.csv'")
        connection.execute(f"COPY (SELECT * FROM '{folder}/in.parquet' LIMIT 1000) TO '{folder}/warm.parquet'")


def best_of_two(work):
    """Time the work twice in this process: the first run also pays for memory that the machine hands out anew."""
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def run_shoal(path, threads):
    import shoal

    shoal.read(path.with_name("warm.parquet"), run=Run(threads=threads))  # loads the compiled kernels
    report_run(best_of_two(lambda: shoal.read(path, run=Run(threads=threads))))


def run_duckdb(path, threads):
    import duckdb

    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {threads}")
        connection.execute("SET preserve_insertion_order = false")
        query = (
            "COPY (SELECT uid, epoch_ms(datetime) // 60000 AS t, CAST(floor((lng - 116) * 853.9) AS INTEGER) AS x, "
            f"CAST(floor((lat - 40) * 1111.9) AS INTEGER) AS y FROM '{path}' ORDER BY uid, t) "
            f"TO '{path.parent}/out-duckdb.parquet'"
        )
        report_run(best_of_two(lambda: connection.execute(query)))


def run_polars(path, threads):
    import os

    os.environ["POLARS_MAX_THREADS"] = str(threads)
    import polars as pl

    def work():
        scan = pl.scan_parquet(path) if path.suffix == ".parquet" else pl.scan_csv(path, try_parse_dates=True)
        gridded = scan.select(
            "uid",
            (pl.col("datetime").dt.epoch("ms") // 60_000).alias("t"),
            ((pl.col("lng") - 116) * 853.9).floor().cast(pl.Int32).alias("x"),
            ((pl.col("lat") - 40) * 1111.9).floor().cast(pl.Int32).alias("y"),
        )
        gridded.sort("uid", "t").collect().write_parquet(path.parent / "out-polars.parquet")

    report_run(best_of_two(work))


RUNS = {"DuckDB": run_duckdb, "Polars": run_polars, "shoal": run_shoal}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--users", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--run", nargs=2, metavar=("WHAT", "FILE"), help="one run, in this process")
    arguments = parser.parse_args()
    if arguments.run:
        RUNS[arguments.run[0]](Path(arguments.run[1]), arguments.threads)
        return
    best = {}
    with tempfile.TemporaryDirectory() as folder:
        generate(folder, arguments.rows, arguments.users)
        for _ in range(arguments.repeats):
            for kind in ("parquet", "csv"):
                for what in RUNS:
                    run = measured(__file__, "--threads", arguments.threads, "--run", what, f"{folder}/in.{kind}")
                    key = kind, what
                    best[key] = min(best.get(key, run), run, key=lambda r: r["seconds"])
    rows = [
        {
            "file": kind,
            "what": what,
            "seconds": f"{run['seconds']:.1f}",
            "against DuckDB": f"{run['seconds'] / best[kind, 'DuckDB']['seconds']:.2f}",
            "peak GB": f"{run['peak_gb']:.1f}",
        }
        for (kind, what), run in best.items()
    ]
    report("read", rows, facts={"rows": arguments.rows, "users": arguments.users, "threads": arguments.threads})


if __name__ == "__main__":
    main()
