"""Run the witness alone on files, with the reader but without a release."""

from __future__ import annotations

import random

from shoal.reading.options import read_options
from shoal.reading.parts import event_parts
from shoal.run import Run
from shoal.seen.findings import Findings
from shoal.seen.witness import Witness

USERS = ["ann", "bob", "7", "007", "Zoë", " ann", "ann ", "1.0", "a,b", 'a"b', "-5", "x" * 70, "ANN"]
BAD_USERS = ["", "", "a\nb"]
TIMES = ["2012-04-03 18:00:09", "2012-04-03T18:00:09", "2012-04-03 18:00:09.123", "2012-04-03 18:00:09.1234567",
         "2012-04-03T18:00:09Z", "2012-04-03 18:00:09+02:00", "2012-04-03T18:00:09.5-0330", "2012-04-03 18:00:09+05",
         "2012-04-03 18:00", "2012-04-03", "2012-03-25 02:30:00", "2012-10-28 02:30:00", "1333476009", "1333476009.5",
         "1333476009123", "1333476009123456", "1.333476009e9", " 2012-04-03 18:00:09 ", "2012-02-29 00:00:00",
         "1969-12-31 23:59:59", "2100-01-01 00:00:00", "2099-12-31 23:59:59.999", "0.5", "-1"]  # fmt: skip
BAD_TIMES = ["", "n/a", "2012-02-30 00:00:00", "2012-04-03 24:00:00", "2012-04-03 18:00:60", "2012-13-01 00:00:00",
             "nan", "inf", "1e30", "yesterday", "2012-04-03 18", "2012-04-03 18:00:09 UTC"]  # fmt: skip
PLACES = ["39.9", "39", "-39.5", "39.", ".5", "3.99e1", " 39.9 ", "0", "0.0", "-0.0", "89.99999999999999", "1e-7",
          "39.123456789012345678"]  # fmt: skip
BAD_PLACES = ["", "nan", "NaN", "inf", "-inf", "91", "-181", "1e400", "x", "39,9", "+39.9", "39.9N", "0x10", "1_0"]


def findings_of(source, *, memory=None, **options):
    """Return the findings of the witness on files that the reader has read."""
    chosen, findings, witness = read_options(None, **options), Findings(), Witness(source)
    with event_parts(source, chosen, run=Run(threads=1, memory=memory)) as parts:
        witness.begin(chosen, parts.account)
        for _ in witness.overhear(parts):
            pass
    witness.testify(findings)
    return findings


def dirty_rows(seed, rows=30):
    """Return rows of texts (user, time, lat, lng), many of which are bad in some way, and reading options."""
    draw = random.Random(seed)

    def some(good, bad, share):
        few = draw.sample(good, draw.randint(1, min(3, len(good))))
        return lambda: draw.choice(bad) if draw.random() < share else draw.choice(few)

    share = draw.choice([0, 0, 0.1, 0.4])
    columns = [some(good, bad, share) for good, bad in
               ((USERS, BAD_USERS), (TIMES, BAD_TIMES), (PLACES, BAD_PLACES), (PLACES, BAD_PLACES))]  # fmt: skip
    options = {"tz": draw.choice(["UTC", "Europe/Berlin", "+05:30", "America/St_Johns"])}
    if draw.random() < 0.2:
        options["period"] = "2012-04-03,2012-04-04"
    if draw.random() < 0.2:
        options["bbox"] = draw.choice(["0,0,90,60", "170,-80,-170,80"])
    if draw.random() < 0.2:
        options["confirm"] = "zero-zero"
    if draw.random() < 0.2:
        options["time_unit"] = draw.choice(["s", "ms", "us", "excel"])
    return [tuple(column() for column in columns) for _ in range(rows)], options
