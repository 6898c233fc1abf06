"""Fuzzing that stays: each kind of input draws damaged files by number, and the same number is always the same file.

    python -m tests.fuzz csv 1234            run one case again, and say how it ended
    python -m tests.fuzz --cases 20000       run many, in processes that are watched (`make fuzz`)

`kinds.py` lists the kinds, `case.py` says what a good end is, `watch.py` runs many cases, and `seeds/` holds what once
broke.
"""
