"""`shoal demo`: all steps, from data to a verified release, on a generated town."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from shoal.cli.console import show, show_json, working
from shoal.cli.options import Running

__all__ = ["demo"]


def demo(
    *,
    folder: Annotated[Path, Parameter(help="The folder for the files.")] = Path("shoal-demo"),
    users: Annotated[int, Parameter(help="How many people to generate.")] = 3000,
    k: Annotated[int, Parameter(help="Hide each person among at least k people.")] = 3,
    running: Running = Running(),  # noqa: B008  frozen
) -> int:
    """Generate a town, measure its exposure, anonymize it and verify the release, with explanations."""
    from shoal.measure import summary, unicity
    from shoal.methods import Shoal
    from shoal.pipeline import publish
    from shoal.reading import read
    from shoal.synth import synthesize

    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    events, release, audit = (folder / name for name in ("events.parquet", "release.parquet", "audit.parquet"))

    def say(text: str = "") -> None:
        if not running.json:
            show(text)

    say(f"1. A town of {users:,} imaginary people, two weeks of their phone calls.")
    with working(running, since=began) as run:
        synthesize(events, users=users, scene="town", seed=1, overwrite=True, run=run)
        people = read(events, run=run)
    say(f"   {people.samples:,} calls: who, when and at which antenna. Numbers already replace the names.")

    with working(running, since=began) as run:
        (four,) = unicity(people, points=4, run=run)
    say("2. Is that anonymous? Suppose somebody knows four calls of a person, to the hour and the kilometre.")
    say(f"   They single out {four.share:.0%} of the people, and learn everything else these people did.")

    say(f"3. So we hide everyone among {k} people: those who move alike are merged into boxes of space and time.")
    with working(running, since=began) as run:
        done = publish(events, release, Shoal(k=k), audit=audit, overwrite=True, run=run)
    of = done.figures()
    say(f"   {of['records']:,} records; half of the boxes are smaller than {of['side_m_median'] / 1000:.1f} km")
    say(f"   and shorter than {of['duration_s_median'] / 3600:.1f} hours. No call was left out, none invented.")
    say("4. Does it hold? The verifier checks the written file. It uses no code of the methods. It says:")
    for message in done.verdict.messages if done.verdict else ():
        say(f"   {message}")
    say()
    say(f"The release:  {release} and its manifest (to hand out; pandas, Polars and DuckDB open it)")
    say(f"Private:      {events} and {audit} (the calls, and who is in which record: keep them secret)")
    say(f"Check it:     shoal verify {events} {release} --k {k} --audit {audit}")
    say(f"Your data:    shoal anonymize YOURS.csv release.parquet --k {k}")
    if running.json:
        show_json({**done.to_dict(), "summary": summary(people), "unique_from_4_points": four.share})
    return 0
