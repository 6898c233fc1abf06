"""Stream: read rows from the engine batch by batch, check and count them. All ways of reading use it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa

from shoal.arrow import from_arrow_array, to_arrow_array
from shoal.errors import BadRows, LikelySwapped, NoValidRows, SettingsError
from shoal.parallel import thread_count
from shoal.progress import SILENT
from shoal.reading.account import (
    BAD_CELL,
    BAD_PLACE,
    BAD_RANGE,
    BAD_ROW,
    BAD_TIME,
    BAD_USER,
    BAD_YEAR,
    BAD_ZERO,
    NO_ROWS,
    OUTSIDE_BBOX,
    ROW_RULES,
    Account,
)
from shoal.reading.arrivals import Arrivals, arrivals
from shoal.reading.columns import printable, told_names
from shoal.reading.engine import batches, open_engine
from shoal.reading.geometry import geo_of_schema
from shoal.reading.limits import check_width
from shoal.reading.parse import Parsed, load_cells, parse, rows_and_users
from shoal.reading.places import DECODED, how_to_swap, no_points, places_notes
from shoal.reading.rejects import rejected_rows
from shoal.reading.rules import KEPT, Rows, Rules, in_box, judge
from shoal.reading.sources import Source
from shoal.reading.times import LOCAL, NO_TIME, NUMBER, ZONED, ZULU, zone
from shoal.units import INT32

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from shoal.progress import Progress
    from shoal.reading.options import ReadOptions

__all__ = ["Input", "OpenRows", "finish", "kept_rows", "open_rows", "refuse_bad_rows"]

BATCH = 1 << 17
_UNIQUE = 0.99  # a larger share of labels that differ within a file means that they number its rows
_SWAPPED = 0.2  # a larger share of rows with impossible latitude and possible longitude is not an accident
_STRICT = {BAD_ROW, BAD_USER, BAD_TIME, BAD_YEAR, BAD_PLACE, BAD_RANGE, BAD_ZERO, BAD_CELL}
_ROLES = {BAD_USER: ("user",), BAD_TIME: ("time", "day", "slot"), BAD_YEAR: ("time", "day", "slot")}

Input: TypeAlias = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | pa.Table


@dataclass
class _Tally:
    """Counts and marks that are collected while rows are streamed."""

    codes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(KEPT + 1, dtype=np.int64))
    kinds: set[int] = field(default_factory=set)
    swapped: int = 0
    swapped_box: int = 0  # outside the bounding box, but inside it with axes exchanged
    whole: bool = True  # whether places given as numbers of cells are whole numbers


@dataclass(frozen=True, eq=False)
class _Inside:
    """The internal state of streaming and accounting."""

    source: Input
    sources: Sequence[Source]
    cells: Sequence[Source]
    options: ReadOptions
    parsed: Parsed
    rules: Rules
    engine: Any
    tally: _Tally
    memory: int
    work_dir: Path | None
    renumbered: bool


@dataclass(frozen=True, eq=False)
class OpenRows:
    """An input whose rows can be streamed once: `labels` sorted, `counts` the rows of each, `total` all rows.

    Take `kept_rows` to its end and `refuse_bad_rows` while the input is open, then `finish` it. `used` tells which
    labels have rows that are kept, `cell_m` is set where places are numbers of cells.
    """

    labels: pa.Array
    counts: NDArray[np.int64]
    total: int
    used: NDArray[np.bool_]
    cell_m: int | None
    inside: _Inside

    @property
    def has_degrees(self) -> bool:
        """Whether places are longitudes and latitudes."""
        return self.inside.parsed.place != "metres"


@contextmanager
def open_rows(
    source: Input,
    options: ReadOptions,
    *,
    memory: int,
    check: Callable[[int], None],
    threads: int | None = None,
    work_dir: Path | None = None,
    progress: Progress = SILENT,
) -> Iterator[OpenRows]:
    """Open an input: find its columns, number its users and count its rows.

    `check` is given the number of rows as soon as it is known, before anything large is done, and may raise; for
    text that is after parsing. The engine takes its share of `memory`.
    """
    with ExitStack() as stack:
        with progress.stage("look"):
            arrived = stack.enter_context(arrivals(work_dir, options, progress))
            sources = _look_at(source, arrived)
            cells = arrived.open(options.cells) if options.cells is not None else []
            check(sum(one.rows for one in sources))
        share = (work_dir, memory)
        engine = stack.enter_context(_open(source, sources, cells, thread_count(threads), *share))
        with progress.stage("parse"):
            parsed = parse(engine, sources, options)
            rules = _rules(parsed, options)
            labels, counts, total = _load_labels(engine, parsed)
            tally = _Tally()
            tally.codes[0] = rejected_rows(engine, sources)
            renumbered = _renumbered(engine, sources, options, counts)
        check(total)
        cell_m = options.cell if parsed.place == "metres" and options.crs is None else None
        limits = (memory, work_dir)
        inside = _Inside(source, sources, cells, options, parsed, rules, engine, tally, *limits, renumbered)
        yield OpenRows(labels, counts, total, np.zeros(len(labels), dtype=np.bool_), cell_m, inside)


def kept_rows(rows: OpenRows, advance: Callable[[float], None]) -> Iterator[Rows]:
    """Yield the kept rows batch by batch, users as label numbers; count the others by rule."""
    inside, tally = rows.inside, rows.inside.tally
    for batch, kinds in _stream(inside.engine, inside.parsed, inside.options, rows.labels):
        tally.kinds |= kinds
        kept = _sift(batch, judge(batch, inside.rules), inside.rules, tally)
        if rows.cell_m is not None:
            tally.whole &= bool((np.floor(kept.a) == kept.a).all() and (np.floor(kept.b) == kept.b).all())
        rows.used[kept.users] = True
        yield kept
        advance(len(batch.users))


def refuse_bad_rows(rows: OpenRows) -> None:
    """Raise if the input as a whole can't be used or, with `strict`, if a row is bad; the input is still open."""
    inside, tally = rows.inside, rows.inside.tally
    _check(tally, inside.parsed)
    if inside.options.strict and any(tally.codes[ROW_RULES.index(rule)] for rule in _STRICT):
        _raise_bad_row(inside)


def finish(rows: OpenRows) -> tuple[pa.Array, Account]:
    """Return the labels that have rows, and the account of the row rules; raises if none is left."""
    inside, tally = rows.inside, rows.inside.tally
    account = _account(tally, inside.parsed, inside.options)
    account = replace(
        account,
        people=len(rows.counts),
        single=int((rows.counts == 1).sum()),
        naive=LOCAL in tally.kinds,
        renumbered=inside.renumbered,
        read=inside.options.to_record(),
    )
    if account.kept_rows == 0:
        raise NoValidRows(_nothing_left(account, inside.sources) + no_points(inside.parsed))
    if not tally.whole:
        raise SettingsError('x and y are not whole numbers: metres need their CRS, e.g. `crs="EPSG:32650"`')
    if rows.used.all():
        return rows.labels, account
    account = replace(account, users_dropped={NO_ROWS: int((~rows.used).sum())})
    return rows.labels.filter(to_arrow_array(rows.used)), account


def _look_at(source: Input, arrived: Arrivals) -> list[Source]:
    if isinstance(source, pa.Table):
        check_width(source.num_columns, "table")
        names, rows = tuple(source.column_names), source.num_rows
        return [Source("table", "table", columns=names, rows=rows, shape=("table",), geo=geo_of_schema(source.schema))]
    return arrived.open(source)


@contextmanager
def _open(
    source: Input,
    sources: Sequence[Source],
    cells: Sequence[Source],
    threads: int,
    work_dir: Path | None,
    memory: int,
    *,
    ordered: bool = False,
) -> Iterator[Any]:
    """Open the engine on the sources and the cells file."""
    files = [(one.path, one.name) for one in (*sources, *cells) if one.path is not None]
    where = f"one of {len(files):,} files" if len(files) > 1 else files[0][1] if files else "table"
    paths, limits = [path for path, _ in files], {"threads": threads, "memory": memory}
    with open_engine(paths, work_dir=work_dir, ordered=ordered, where=where, **limits) as engine:
        if isinstance(source, pa.Table):
            # Without the metadata of columns, which DuckDB 1.5 takes for types of its own (GeoArrow), nor their names.
            names = [f"c{i}" for i in range(source.num_columns)]
            engine.register("input", pa.Table.from_arrays(source.columns, names))
        load_cells(engine, cells)
        yield engine


def _rules(parsed: Parsed, options: ReadOptions) -> Rules:
    if parsed.place == "metres" and options.crs is None and options.bbox is not None:
        raise SettingsError("a bounding box is in degrees, but the places are grid cells; leave out `bbox`")
    if parsed.place != "metres":
        no_zero = "zero-zero" not in options.confirm
        limits = Rules(max_a=180, max_b=90, from_cells=parsed.place == "cell", no_zero=no_zero)
    elif options.crs is not None:
        limits = Rules(max_a=1e8, max_b=1e8, crs=options.crs)
    else:
        most = INT32 // options.cell - 1
        limits = Rules(max_a=most, max_b=most)
    return replace(limits, period_ms=options.period_ms(), bbox=options.bbox)


def _load_labels(engine: Any, parsed: Parsed) -> tuple[pa.Array, NDArray[np.int64], int]:
    """Load the labels and number the users in their order; return the labels, the rows of each and of all."""
    engine.execute(f"CREATE TEMP TABLE users AS SELECT u, count(*) AS n FROM ({parsed.sql}) GROUP BY u")  # noqa: S608
    numbered = "SELECT u, n, CAST(row_number() OVER (ORDER BY u) - 1 AS INTEGER) AS code"
    engine.execute(f"CREATE TEMP TABLE labels AS {numbered} FROM users WHERE u IS NOT NULL")
    labels = engine.sql("SELECT u, n FROM labels ORDER BY code").to_arrow_table().combine_chunks()
    (total,) = engine.execute("SELECT coalesce(sum(n), 0) FROM users").fetchall()[0]
    engine.execute("DROP TABLE users")
    names, counts = (labels.column(i).combine_chunks() for i in range(2))
    return names, from_arrow_array(counts), int(total)


def _renumbered(engine: Any, sources: Sequence[Source], options: ReadOptions, counts: NDArray[np.int64]) -> bool:
    """Return whether users are (nearly) unique within each file, as numbers of rows that begin anew in each file.

    Files are looked at one by one only if no user has more rows than there are files, which is so for hardly any data.
    """
    if len(sources) < 2 or len(counts) == 0 or counts.max() > len(sources):
        return False
    rows, users = rows_and_users(engine, sources, options)
    return rows > 0 and users > _UNIQUE * rows


def _stream(
    engine: Any, parsed: Parsed, options: ReadOptions, labels: pa.Array | None
) -> Iterator[tuple[Rows, set[int]]]:
    """Yield the rows batch by batch, with times in UTC, and the kinds of time in each batch.

    Without labels every user is 0, and the rows keep the order that the engine gives them. Users are numbered by
    a join with the labels, or, three times as fast, by a look-up where labels are integers that lie close together.
    """
    kind = ", coalesce(p.kind, 0) AS kind" if parsed.kind is None else ""
    table, low = (None, 0) if labels is None or parsed.text_users else _lookup(labels)
    if labels is None:
        user, join = "CASE WHEN p.u IS NULL THEN -1 ELSE 0 END", ""
    elif table is not None:
        user, join = f"coalesce(p.u, {low}) - {low}", ""
    else:
        user, join = "coalesce(l.code, -1)", "LEFT JOIN labels AS l ON p.u = l.u"
    query = (
        f"SELECT CAST({user} AS INTEGER) AS users, coalesce(p.ms, {NO_TIME}) AS ms, coalesce(p.a, 'nan') AS a, "  # noqa: S608
        f"coalesce(p.b, 'nan') AS b{kind} FROM ({parsed.sql}) AS p {join}"
    )
    for batch in batches(engine, query, BATCH):
        users, ms, a, b, *kinds = (from_arrow_array(column) for column in batch.columns)
        present = _kinds(kinds[0], ms) if parsed.kind is None else {parsed.kind}
        if LOCAL in present and options.tz != "UTC":
            which = (kinds[0] == LOCAL if parsed.kind is None else True) & (ms != NO_TIME)
            ms = _to_utc(ms, which, options.tz)
        yield Rows(users if table is None else table[users], ms, a, b), present


def _lookup(labels: pa.Array) -> tuple[NDArray[np.int32] | None, int]:
    """Return a table from (label - low) to user numbers, and low, which means no user; None if it would be large."""
    values = from_arrow_array(labels)
    if len(values) == 0 or int(values[-1]) - int(values[0]) > 10_000_000:
        return None, 0
    low = int(values[0]) - 1
    table = np.full(int(values[-1]) - low + 1, -1, dtype=np.int32)
    table[values - low] = np.arange(len(values))
    return table, low


def _kinds(kinds: NDArray[np.uint8], ms: NDArray[np.int64]) -> set[int]:
    """Return the kinds of time that occur; unreadable times have no kind."""
    return {kind for kind in (ZONED, ZULU, LOCAL, NUMBER) if ((kinds == kind) & (ms != NO_TIME)).any()}


def _to_utc(ms: NDArray[np.int64], which: NDArray[np.bool_], tz: str) -> NDArray[np.int64]:
    """Return the times with the local ones converted to UTC."""
    if which.all():
        return zone(tz).to_utc(ms)
    ms = ms.copy()
    ms[which] = zone(tz).to_utc(ms[which])
    return ms


def _sift(rows: Rows, codes: NDArray[np.uint8] | None, rules: Rules, tally: _Tally) -> Rows:
    """Return the rows that are kept; count the others by rule."""
    if codes is None:
        tally.codes[KEPT] += len(rows.users)
        return rows
    tally.codes += np.bincount(codes, minlength=KEPT + 1)
    impossible = codes == ROW_RULES.index(BAD_RANGE)
    tally.swapped += int(np.sum(impossible & (np.abs(rows.a) <= rules.max_b) & (np.abs(rows.b) > rules.max_b)))
    if rules.bbox is not None:
        outside = codes == ROW_RULES.index(OUTSIDE_BBOX)
        tally.swapped_box += int(in_box(rows.b[outside], rows.a[outside], rules).sum())
    mask = codes == KEPT
    return Rows(rows.users[mask], rows.ms[mask], rows.a[mask], rows.b[mask])


def _check(tally: _Tally, parsed: Parsed) -> None:
    """Check the input as a whole, beyond single rows; raises LikelySwapped."""
    if parsed.place != "degrees":
        return
    kept, advice = int(tally.codes[KEPT]), how_to_swap(parsed.columns)
    places = kept + int(tally.codes[ROW_RULES.index(BAD_RANGE)])
    if tally.swapped > _SWAPPED * places:
        raise LikelySwapped(
            f"latitude and longitude seem to be exchanged: {tally.swapped:,} of {places:,} latitudes are beyond 90; "
            f"{advice}"
        )
    outside = int(tally.codes[ROW_RULES.index(OUTSIDE_BBOX)])
    if kept == 0 and tally.swapped_box > outside / 2:
        raise LikelySwapped(
            f"latitude and longitude seem to be exchanged: all places are outside the bounding box, but most would be "
            f"inside with both exchanged; {advice}, or correct the box: west,south,east,north"
        )


def _account(tally: _Tally, parsed: Parsed, options: ReadOptions) -> Account:
    dropped = {rule: int(n) for rule, n in zip(ROW_RULES, tally.codes, strict=False) if n}
    notes = list(parsed.notes)
    if LOCAL in tally.kinds:
        said = "; of times that occur twice the first, skipped ones moved forward" if options.tz != "UTC" else ""
        if "tz" not in options.model_fields_set:
            said = '; if they are local times, give their zone, e.g. `tz="Africa/Dakar"`'
        notes.append(f"times without a zone were read as {options.tz}{said}")
    if NUMBER in tally.kinds and options.time_unit == "auto" and parsed.columns.unit is None:
        notes.append("times that are numbers were read by their size: below 1e11 as s, below 1e14 as ms, else as µs")
    if "day" in parsed.columns.of:
        notes.append(f"times are day and slot numbers: day 0 is 1970-01-01, slots last {options.slot} s")
    if parsed.place == "metres" and options.crs is None:
        notes.append(f"x and y were read as numbers of cells of {options.cell} m, without geography (no CRS given)")
    notes += places_notes(parsed)
    if parsed.ignored:
        notes.append(f"ignored columns: {', '.join(told_names(parsed.ignored))}")
    columns = {role: printable(name) for role, name in parsed.columns.of.items()}
    return Account(int(tally.codes.sum()), dropped, {}, int(tally.codes[KEPT]), columns, notes=tuple(notes))


def _nothing_left(account: Account, sources: Sequence[Source]) -> str:
    where = sources[0].name if len(sources) == 1 else f"{len(sources):,} files"
    if account.rows_read == 0:
        return f"{where}: there are no rows"
    worst = max(account.dropped, key=lambda rule: account.dropped[rule])
    advice = "check `columns`, `time_format`, `tz` and filters"
    return f"{where}: none of {account.rows_read:,} rows can be used; most: {worst}; {advice}"


def _raise_bad_row(inside: _Inside) -> NoReturn:
    """Find the first bad row, in the order of the files, and raise BadRows with its position."""
    options, malformed, share = inside.options, inside.tally.codes[0] > 0, (inside.work_dir, inside.memory)
    for one in inside.sources:
        with _open(inside.source, [one], inside.cells, 1, *share, ordered=True) as engine:
            parsed = parse(engine, [one], options, once=malformed, known=inside.parsed)
            if line := rejected_rows(engine, [one], first=True) if malformed else 0:
                raise BadRows(_bad_row(one, line - 1, BAD_ROW, parsed))
            limits = _rules(parsed, options)
            seen = 0
            for rows, _ in _stream(engine, parsed, options, None):
                codes = judge(rows, replace(limits, period_ms=None, bbox=None))
                if codes is not None and (codes < KEPT).any():
                    first = int(np.argmax(codes < KEPT))
                    raise BadRows(_bad_row(one, seen + first + 1, ROW_RULES[codes[first]], parsed))
                seen += len(rows.users)
    raise BadRows("a row breaks a rule; read without `strict` to see the account")


def _bad_row(source: Source, row: int, rule: str, parsed: Parsed) -> str:
    roles = _ROLES.get(rule, ("lat", "lng", "x", "y", *DECODED, "cell") if rule != BAD_ROW else ())
    names = [printable(parsed.columns.of[role]) for role in roles if role in parsed.columns.of]
    column = f", column {' and '.join(names)}" if names else ""
    what = "row" if parsed.columns.trip is None else "sample"
    return f"{source.name}, {what} {row:,}{column}: {rule}; correct it, or read without `strict`"
