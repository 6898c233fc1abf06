"""Events from PostgreSQL and releases into it: what that adds to files.

    python bench/bench_stores.py [--events 1000000] [--repeats 3]

A server of its own is started (PostgreSQL with PostGIS must be installed: tests/setup/postgres.sh). The same events
are read from Parquet and from a table. The same release goes to Parquet and to a table, where it is read back before
the commit; it is not verified here. CPU seconds are those of this process, without the server's; best of several.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from _bench import report

sys.path.insert(0, str(Path(__file__).parent.parent))

import shoal
from shoal.publishing.stage import Outputs, stage
from tests.postgres import Database, started


def best(work, repeats):
    """Return the least CPU and wall-clock seconds of some runs."""
    cpu, wall = [], []
    for _ in range(repeats):
        begun = time.process_time(), time.perf_counter()
        work()
        cpu.append(time.process_time() - begun[0])
        wall.append(time.perf_counter() - begun[1])
    return {"CPU s": f"{min(cpu):.2f}", "seconds": f"{min(wall):.2f}"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, started() as server:
        file = Path(folder, "events.parquet")
        shoal.synthesize(file, users=arguments.events // 50, days=14, seed=1)
        events = pq.read_table(file).slice(0, arguments.events)
        pq.write_table(events, file)
        server.sql("CREATE DATABASE bench TEMPLATE geo")
        database = Database(server, "bench")
        database.load("events", events)
        people = shoal.read(file)
        release = shoal.Uniform(to_cell="1km", to_slot="1h").anonymize(people)

        def publish(target):
            with stage(release, Outputs.at(target, overwrite=True)) as staged:
                staged.publish()

        work = {
            "read a file": lambda: shoal.read(file),
            "read a table": lambda: shoal.read(database.table("events")),
            "publish a file": lambda: publish(Path(folder, "release.parquet")),
            "publish a table": lambda: publish(database.table("release")),
        }
        rows = [{"what": what, **best(one, arguments.repeats)} for what, one in work.items()]
        (megabytes,) = database.sql("SELECT pg_total_relation_size('release') / 1000000")[0]
        facts = {"events": events.num_rows, "boxes": len(release.layout), "MB of the table": int(megabytes)}
        report("stores", rows, facts=facts)


if __name__ == "__main__":
    main()
