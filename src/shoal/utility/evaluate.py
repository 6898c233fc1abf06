"""Evaluate a release of points or boxes by all utility metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

from shoal.figures import Figured
from shoal.reading.options import read_options
from shoal.run import LOCAL, Run
from shoal.seen.pairs import open_pairs
from shoal.utility.metrics import METRICS, Drawn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa

    from shoal.reading.events import Input
    from shoal.reading.options import Reading, ReadOptions
    from shoal.release import Release
    from shoal.seen.pairs import Pairs
    from shoal.traces import Traces

__all__ = ["Evaluation", "evaluate", "evaluate_pairs"]


@dataclass(frozen=True, kw_only=True)
class Evaluation(Figured):
    """The utility figures of a release. They identify nobody: they are counts, and means over points and queries.

    `figures` are those of all `shoal.utility.METRICS` by name; each is an attribute too, e.g. `query_distortion`. A
    figure is None if its metric needs the owners of the records, and these are not known. `seconds` is how long the
    method ran, if there is a run record. `notes` say how the original was read. docs/evaluate.md explains the figures.
    """

    traces: int
    fixes: int
    records: int
    points: int
    figures: Mapping[str, Any]
    seconds: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def unmeasured(self) -> list[str]:
        """The names of the metrics that could not be measured, because the owners of the records are not known."""
        return [name for name, metric in METRICS.items() if self.figures.get(metric.figures[0].name) is None]

    def to_dict(self) -> dict[str, Any]:
        """Return plain types that can be written as JSON."""
        return {**self._sizes(), **self.figures, "seconds": self.seconds}

    def table(self) -> list[tuple[str, Any]]:
        """Return the figures as printable rows."""
        printed = [figure for metric in METRICS.values() for figure in metric.figures if figure.label]
        rows: list[tuple[str, Any]] = list(self._sizes().items())
        rows += [(one.label, one.text(self.figures)) for one in printed if self.figures.get(one.name) is not None]
        if self.seconds is not None:
            rows.append(("seconds of the method", f"{self.seconds:,.2f}"))
        return rows

    def _sizes(self) -> dict[str, int]:
        return {"traces": self.traces, "fixes": self.fixes, "records": self.records, "points": self.points}


def evaluate(
    original: Input | Traces,
    release: str | Path | Release,
    *,
    audit: str | Path | pa.Table | None = None,
    run_record: str | Path | None = None,
    queries: int = 1000,
    seed: int = 0,
    options: ReadOptions | None = None,
    run: Run = LOCAL,
    **reading: Unpack[Reading],
) -> Evaluation:
    """Measure how useful a release still is, by the figures of `METRICS`; a box counts as one point, its middle.

    Parameters
    ----------
    original, release
        The data that the release was made from (files or Traces), and the release (a file, or an object in memory).
    audit, run_record
        The private audit file, needed for the spatial error; the private run record, which has reading options that are
        not given, and the time of the method. The record is found by itself beside the release or the audit file.
    queries, seed
        How many range queries to draw, and their seed.
    options, **reading
        The reading options that the release was made with, as an object or as keywords (`split_gap="4h"`).
    run
        Threads, memory and the folder for temporary files.

    Returns
    -------
    Evaluation
        The figures. They are the same for the same seed, with any number of threads.

    Raises
    ------
    CannotCheck
        Something can't be read.
    TooLarge
        A metric does not fit into the memory of the run.

    Cost: seconds for ten million fixes. Memory: 24 bytes for each published point; for the spatial error another 16,
    and 32 for each original fix.

    >>> import shoal
    >>> table = shoal.synthesize(users=5, kind="gps", scene="town", days=1, seed=1)
    >>> traces = shoal.read_traces(table, split_gap="4h")
    >>> evaluate(traces, shoal.Promesse(step=100).anonymize(traces)).spatial_error_m < 20
    True
    """
    chosen = read_options(options, **reading) if reading else options
    pairs = open_pairs(original, release, audit=audit, run_record=run_record, options=chosen, run=run)
    return evaluate_pairs(pairs, queries=queries, seed=seed, run=run)


def evaluate_pairs(pairs: Pairs, *, queries: int = 1000, seed: int = 0, run: Run = LOCAL) -> Evaluation:
    """Measure all `METRICS` that can be measured on an open original and release."""
    figures: dict[str, Any] = {figure.name: None for metric in METRICS.values() for figure in metric.figures}
    metrics = [one for one in METRICS.values() if pairs.traces is not None or not one.needs_owners]
    for metric in metrics:
        metric.require_room(pairs, run)
    for metric in metrics:
        with run.stage(metric.name):
            figures |= metric.measure(pairs, Drawn(queries, seed), run)
    return Evaluation(
        traces=len(pairs.original),
        fixes=pairs.original.fixes,
        records=len(pairs.published),
        points=len(pairs.published.ms),
        figures=figures,
        seconds=pairs.recorded.seconds,
        notes=pairs.recorded.said(),
    )
