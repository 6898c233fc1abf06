"""Parse: build the SQL that turns any input into the same five columns.

Every source becomes rows of `u` (user, BIGINT or VARCHAR), `ms` (epoch milliseconds, NULL for unreadable),
`kind` (of time: local ones still lack their zone), `a` and `b` (place; NULL or NaN for unreadable). Nothing is
dropped here.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from shoal.errors import ColumnsNotFound, InputError, UnreadableFile
from shoal.reading.columns import FROM_PATH, Columns, find_cell_columns, find_columns, keys_of
from shoal.reading.dates import odd_sql, told_sql
from shoal.reading.degrees import odd_number_sql
from shoal.reading.engine import text_literal
from shoal.reading.limits import MAX_LINE, MAX_REJECTS, MAX_TEXT, bounded_sql, check_unpacked
from shoal.reading.odd import PLAIN, Odd, Part, digits_sql, has_odd_numbers, joined_sql, not_plain_sql, survey_odd
from shoal.reading.paths import with_users
from shoal.reading.places import DECODED, decoder_of, point_sql, trips_sql
from shoal.reading.rejects import encoding_note, refuse_lost_rows
from shoal.reading.shapes import ORDERS
from shoal.reading.times import LOCAL, NUMBER, ZONED, days_sql, kind_sql, number_sql, text_sql

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from shoal.reading.codes import CentresOf
    from shoal.reading.geometry import PointsOf
    from shoal.reading.options import ReadOptions
    from shoal.reading.sources import Source

__all__ = ["Parsed", "load_cells", "parse", "rows_and_users"]

_INTEGERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER"}
_NUMBERS = _INTEGERS | {"UBIGINT", "HUGEINT", "UHUGEINT", "FLOAT", "DOUBLE"}
_NAIVE = {"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "DATE"}
_CLOCKS = {"TIME", "TIME WITH TIME ZONE"}  # DuckDB 1.5 sees the second in a Parquet file that Arrow wrote
_AWARE = {"TIMESTAMP WITH TIME ZONE", "TIMESTAMP_NS WITH TIME ZONE"}
_TEXT = {"VARCHAR", "UUID"}
_ONE_KIND = {str(kind) for kind in (LOCAL, NUMBER, ZONED)}


@dataclass(frozen=True)
class Parsed:
    """A query with columns u, ms, kind, a, b over all sources, and what is known about it."""

    sql: str
    columns: Columns
    ignored: tuple[str, ...]
    text_users: bool
    kind: int | None  # of all times; None if that differs from row to row
    odd: Odd = PLAIN
    notes: tuple[str, ...] = ()
    decoders: tuple[PointsOf | CentresOf, ...] = ()

    @property
    def place(self) -> str:
        """How places are given: `degrees`, `metres` or `cell`."""
        return self.columns.place


@dataclass(frozen=True)
class _Table:
    """Files of equal shape: how the engine opens them, and the names and types of their columns, in order."""

    call: str
    names: tuple[str, ...]
    types: tuple[str, ...]
    renamed: bool = False  # whether the columns have to be given their numbers as names

    @property
    def sql(self) -> str:
        """The table expression."""
        return self.call + (f" AS f({', '.join(f'c{i}' for i in range(len(self.names)))})" if self.renamed else " AS f")

    def keyed(self) -> dict[str, tuple[str, str]]:
        """Return the SQL name and the type of each column, by what it is called (see `keys_of`)."""
        return {key: (f"c{i}", kind) for i, (key, kind) in enumerate(zip(keys_of(self.names), self.types, strict=True))}

    def with_path(self) -> tuple[_Table, str]:
        """Return the same table with a further column for the path of each row's file, and the name of the column."""
        taken, name = {name.lower() for name in self.names}, "shoal_file"
        while name in taken:
            name += "_"
        return replace(self, call=f"{self.call.removesuffix(')')}, filename = '{name}')"), name


@dataclass(frozen=True)
class _Group:
    """Files of equal shape: a table expression, and the SQL name and type of each of their columns."""

    table: str
    keyed: dict[str, tuple[str, str]]
    columns: Columns
    texts: dict[str, str] = field(default_factory=dict)  # SQL by role, of those that are no column of the file
    decoder: PointsOf | CentresOf | None = None
    point: str = ""  # SQL for the place, if it is decoded
    odd_numbers: bool = False  # whether times are numbers that may be no epoch times

    def of(self, role: str) -> str:
        return self.texts.get(role) or self.keyed[self.columns.of[role]][0]

    def type_of(self, role: str) -> str:
        return "VARCHAR" if role in self.texts else self.keyed[self.columns.of[role]][1]


def parse(
    engine: Any, sources: Sequence[Source], options: ReadOptions, *, once: bool = True, known: Parsed | None = None
) -> Parsed:
    """Build the query over all sources.

    With `once` text files are parsed into a temporary table (they are read twice otherwise). What is decided from all
    rows is taken from `known`, where it was decided before. Raises ColumnsNotFound for columns that are missing,
    ambiguous or of a type that can't hold what they should, InputError for dates with several readings.
    """
    shapes: dict[tuple[object, ...], list[Source]] = {}
    for source in sources:
        shapes.setdefault(source.shape, []).append(source)
    groups = [(files, _group(engine, files, options, number)) for number, files in enumerate(shapes.values())]
    if len({group.columns.place for _, group in groups}) > 1:
        raise ColumnsNotFound("the files give places in different ways; read them apart, or name the `columns`")
    text_users = any(_base_type(group.type_of("user")) not in _INTEGERS for _, group in groups)
    parts, kinds = [], set[str]()
    for number, (files, group) in enumerate(groups):
        part, kind_of_time = _select(group, options, files[0].name, text_users=text_users)
        kinds.add(kind_of_time)
        if once and files[0].kind == "csv":
            engine.execute(f"CREATE TEMP TABLE part_{number} AS {part.query}")
            part = replace(part, query=f"SELECT * FROM part_{number}", check=None)  # noqa: S608  our own names
        parts.append(part)
    if once:
        refuse_lost_rows(engine, sources)
    if known is None:
        where = sources[0].name if len(sources) == 1 else f"{len(sources):,} files"
        odd = survey_odd(engine, parts, options, where)
    else:
        odd = known.odd
    kind = int(kinds.pop()) if len(kinds) == 1 and kinds <= _ONE_KIND and not odd.dates.formats else None
    ignored = tuple(dict.fromkeys(name for _, group in groups for name in group.columns.ignored))
    decoders = tuple(group.decoder for _, group in groups if group.decoder is not None)
    encoding = encoding_note(engine, sources) if once else []
    notes = tuple(dict.fromkeys((*(note for source in sources for note in source.notes), *encoding, *odd.notes)))
    query = " UNION ALL ".join(odd.filled(part, engine) for part in parts)
    return Parsed(query, groups[0][1].columns, ignored, text_users, kind, odd, notes, decoders)


def load_cells(engine: Any, sources: Sequence[Source]) -> None:
    """Load cells files into a temporary table `cells` (id, lat, lng); raises InputError for contradictions."""
    if not sources:
        return
    name = sources[0].name
    parts = []
    for source in sources:
        table = _table(engine, [source])
        keyed, found = table.keyed(), find_cell_columns(table.names, name)
        lat, lng = (_degrees(*keyed[found[role]], role, name) for role in ("lat", "lng"))
        identity = f"CAST({keyed[found['id']][0]} AS VARCHAR)"
        parts.append(f"SELECT {identity} AS id, {lat} AS lat, {lng} AS lng FROM {table.sql}")  # noqa: S608
    valid = "id IS NOT NULL AND abs(lat) <= 90 AND abs(lng) <= 180 AND lower(concat(lat, lng)) NOT LIKE '%nan%'"
    everything = " UNION ALL ".join(parts)
    engine.execute(f"CREATE TEMP TABLE cells AS SELECT DISTINCT id, lat, lng FROM ({everything}) WHERE {valid}")  # noqa: S608
    (rows, ids) = engine.execute("SELECT count(*), count(DISTINCT id) FROM cells").fetchall()[0]
    if rows == 0:
        raise InputError(f"{name}: no cell has an id and a place; check the columns id, lat, lng")
    if rows != ids:
        raise InputError(f"{name}: some cells have two places; keep one line for each id")


def rows_and_users(engine: Any, sources: Sequence[Source], options: ReadOptions) -> tuple[int, int]:
    """Return the sums, over the files, of the rows that have a user and of the users in each file.

    Both are 0 if the users are told by the names of files. The files are read once more.
    """
    rows = users = 0
    for source in sources:
        table = _table(engine, [source])
        column = _columns_of(source, table.names, options).of["user"]
        if column in FROM_PATH:
            return 0, 0
        label = _user(*table.keyed()[column], source.name, text=True)
        counted = f"SELECT count(u), count(DISTINCT u) FROM (SELECT {label} AS u FROM {table.sql})"  # noqa: S608
        ((of_file, apart),) = engine.execute(counted).fetchall()
        rows, users = rows + of_file, users + apart
    return rows, users


def _columns_of(source: Source, names: Sequence[str], options: ReadOptions) -> Columns:
    """Return the columns to read of files like this one."""
    geo = source.geo
    geometry = geo.column if geo is not None and geo.column in names else None
    try:
        return find_columns(names, options.columns, source.name, has_cells=options.cells is not None, geometry=geometry)
    except ColumnsNotFound:
        if source.fits:
            raise
        # A line that was cut off or joined with the next one can hold data: none of it is shown.
        raise ColumnsNotFound(
            f"{source.name}: the line of column names does not have as many fields as the line after it, and columns "
            "that are needed are not in it; is the file whole?"
        ) from None


def _group(engine: Any, files: list[Source], options: ReadOptions, number: int) -> _Group:
    whole = _table(engine, files)
    geo, name = files[0].geo, files[0].name
    columns, keyed = _columns_of(files[0], whole.names, options), whole.keyed()
    table, texts = whole.sql, {}
    if columns.of["user"] in FROM_PATH:
        told, path = whole.with_path()
        table, texts["user"] = with_users(engine, told.sql, path, files, columns.of["user"], number)
    read = {"trip" if name == columns.trip else role: keyed[name] for role, name in columns.of.items() if name in keyed}
    read = {role: (column, _base_type(kind)) for role, (column, kind) in read.items()}
    table = _bounded(engine, table, read, files)
    if columns.trip is not None:
        column, kind = keyed[columns.trip]
        if _base_type(kind) != "VARCHAR":
            raise _wrong_type("trip", kind, name)
        table, texts["time"], texts["geometry"] = trips_sql(table, column, number)
    group = _Group(table, keyed, columns, texts)
    if "time" in columns.of and options.time_unit == "auto" and _base_type(group.type_of("time")) in _NUMBERS:
        group = replace(group, odd_numbers=has_odd_numbers(engine, table, group.of("time")))
    role = next((role for role in DECODED if role in columns.of), None)
    if role is None:
        return group
    stated = geo if geo is not None and geo.column == columns.of[role] else None
    decoder = decoder_of(role, group.type_of(role), stated, name)
    point = point_sql(engine, decoder, group.of(role), group.type_of(role), number)
    return replace(group, decoder=decoder, point=point)


def _bounded(engine: Any, table: str, cells: Mapping[str, tuple[str, str]], files: Sequence[Source]) -> str:
    """Return a table that ends the query at a cell beyond its limit; `cells` are the columns that are read, by role.

    Raises TooLarge if large geometries or trips are repeated, as in a decompression bomb. Text can't repeat them.
    """
    for role in {"geometry", "trip"} & cells.keys() if files[0].kind == "parquet" else ():
        column, kind = cells[role]
        if kind in {"VARCHAR", "BLOB"}:
            length = f"octet_length({column})" if kind == "BLOB" else f"strlen({column})"
            large = f"SELECT coalesce(sum({length}) FILTER ({length} > {MAX_TEXT}), 0) FROM {table}"  # noqa: S608
            size = sum(file.path.stat().st_size for file in files if file.path is not None)
            check_unpacked(int(engine.execute(large).fetchall()[0][0]), size, files[0].name)
    bounded = bounded_sql(cells)
    return f"(SELECT * FROM {table} WHERE {bounded}) AS f" if bounded else table  # noqa: S608


def _table(engine: Any, files: list[Source]) -> _Table:
    """Return a table expression over files of one shape, whose columns are numbered: c0, c1, ….

    The engine takes names that differ only in case for the same, and renames one of them.
    """
    first = files[0]
    paths = ", ".join(text_literal(file.path) for file in files if file.path is not None)
    if first.kind == "csv":
        # Columns are typed as text: no sniffing, nothing depends on what they look like.
        typed = ", ".join(f"'c{i}': 'VARCHAR'" for i in range(len(first.columns)))
        call = (
            f"read_csv([{paths}], auto_detect = false, header = {str(first.header).lower()}, skip = {first.skip}, "
            f"delim = {text_literal(first.delimiter)}, quote = '\"', escape = '\"', columns = {{{typed}}}, "
            f"hive_partitioning = false, max_line_size = {MAX_LINE}, store_rejects = true, "
            f"rejects_limit = {MAX_REJECTS})"
        )
        return _Table(call, first.columns, ("VARCHAR",) * len(first.columns))
    if first.kind == "table":
        described = engine.execute("DESCRIBE SELECT * FROM input").fetchall()
        return _Table("input", first.columns, tuple(row[1] for row in described))
    call = f"read_parquet([{paths}], hive_partitioning = false)"
    described = engine.execute(f"DESCRIBE SELECT * FROM {call}").fetchall()  # noqa: S608
    names = _parquet_names(engine, first)
    if len(names) != len(described):
        raise UnreadableFile(f"{first.name}: its list of columns is damaged; write it again")
    return _Table(call, names, tuple(row[1] for row in described), renamed=True)


def _parquet_names(engine: Any, source: Source) -> tuple[str, ...]:
    """Return the names of the columns of a Parquet file as they stand in it."""
    fields = engine.execute("SELECT name, num_children FROM parquet_schema(?)", [str(source.path)]).fetchall()
    names, inside = [], 0
    for name, children in fields[1:]:
        if inside == 0:
            names.append(name)
        inside += (children or 0) - (inside > 0)
    return tuple(names)


def _select(group: _Group, options: ReadOptions, where: str, *, text_users: bool) -> tuple[Part, str]:
    """Return the query over one group, and SQL for the kind of its times."""
    user = _user(group.of("user"), group.type_of("user"), where, text=text_users)
    raw, kind, ms, by_size = _time(group, options, where)
    table = group.table
    roles = {"degrees": ("lng", "lat"), "metres": ("x", "y")}.get(group.columns.place, ())
    texts = ["NULL", "NULL"]
    if group.point:
        table = f"(SELECT *, {group.point} AS shoal_point FROM {table})"  # noqa: S608
        a, b, roles = "shoal_point.a", "shoal_point.b", ()
    elif group.columns.place == "cell":
        cell = f"CAST({group.of('cell')} AS VARCHAR)"
        unknown = f"CASE WHEN {cell} IS NULL THEN NULL ELSE 'inf'::DOUBLE END"
        a, b = f"coalesce(cells.lng, {unknown})", "coalesce(cells.lat, 0)"
        table = f"{table} LEFT JOIN cells ON {cell} = cells.id"
    else:
        a, b = (_number(group.of(role), group.type_of(role), role, where) for role in roles)
        texts = [_text(group.of(r)) if _base_type(group.type_of(r)) == "VARCHAR" else "NULL" for r in roles]
    is_odd = by_size is not None or texts != ["NULL", "NULL"]
    inner = f"SELECT {user} AS u, {raw} AS raw, {kind} AS kind, {a} AS a, {b} AS b FROM {table}"  # noqa: S608
    if not is_odd:
        return Part(f"SELECT u, kind, {ms} AS ms, a, b FROM ({inner})"), kind  # noqa: S608
    # What the engine can't read keeps its text beside it; see `odd.py`.
    ta, tb = texts
    inner = f"SELECT {user} AS u, {raw} AS raw, {kind} AS kind, {ta} AS ta, {tb} AS tb, {a} AS a, {b} AS b FROM {table}"  # noqa: S608
    inner = f"SELECT *, {ms} AS ms FROM ({inner})"  # noqa: S608
    odd = "NULL::VARCHAR" if by_size is None else odd_sql("raw", "kind", "ms", by_size=by_size)
    oa, ob = (f"CASE WHEN {n} IS NULL THEN t{n} END::VARCHAR" for n in "ab")
    columns = f"u, kind, ms, a, b, {odd} AS odd, {oa} AS oa, {ob} AS ob"
    # Text that is read only once, as it is streamed, is looked over quickly before.
    check = not_plain_sql(table, raw) if by_size is not None and texts == ["NULL", "NULL"] else None
    return Part(f"SELECT {columns} FROM ({inner})", roles, by_size, has_odd=True, check=check), kind  # noqa: S608


def _base_type(name: str) -> str:
    if name.startswith("DECIMAL"):
        return "DOUBLE"
    return "VARCHAR" if name.startswith("ENUM") else name


def _user(column: str, kind: str, where: str, *, text: bool) -> str:
    if _base_type(kind) not in _NUMBERS | _TEXT | {"BOOLEAN"}:
        raise _wrong_type("user", kind, where)
    if not text:
        return f"CAST({column} AS BIGINT)"
    # Whole numbers that pandas stored as floats, because some are missing (NaN), keep their usual spelling.
    # NaN is told by its spelling, hidden in lower(): see `number_sql`.
    if kind in {"FLOAT", "DOUBLE"}:
        whole = f"{column} = floor({column}) AND abs({column}) < 1e15"
        as_whole, as_float = f"CAST(TRY_CAST({column} AS BIGINT) AS VARCHAR)", f"CAST({column} AS VARCHAR)"
        finite = f"lower({as_float}) NOT IN ('nan', 'inf', '-inf')"
        return f"CASE WHEN {whole} THEN {as_whole} WHEN {finite} THEN {as_float} END"
    label = f"CAST({column} AS VARCHAR)"
    return f"CASE WHEN {label} <> '' AND NOT contains({label}, chr(0)) THEN {label} END"


def _number(column: str, kind: str, role: str, where: str) -> str:
    base = _base_type(kind)
    if base in _NUMBERS:
        return f"CAST({column} AS DOUBLE)"
    if base == "VARCHAR":
        return f"TRY_CAST({_text(column)} AS DOUBLE)"
    raise _wrong_type(role, kind, where)


def _degrees(column: str, kind: str, role: str, where: str) -> str:
    """Return SQL for degrees in a cells file, also with a decimal comma or a hemisphere."""
    number = _number(column, kind, role, where)
    return f"coalesce({number}, {odd_number_sql(_text(column), role)})" if _base_type(kind) == "VARCHAR" else number


def _text(column: str) -> str:
    """Return SQL for a text, NULL if it is empty.

    The CASE also hides the column from the optimizer, which would otherwise move a TRY_CAST of a bare column
    into the CSV reader, where a value that can't be cast rejects the whole row.
    """
    text = f"CAST({column} AS VARCHAR)"
    return f"CASE WHEN {text} <> '' THEN {text} END"


def _time(group: _Group, options: ReadOptions, where: str) -> tuple[str, str, str, bool | None]:
    """Return SQL for the time as given, for its kind, and for the milliseconds of `raw` and `kind`.

    The last value is whether odd numbers are to be surveyed as well as odd texts; None if neither can occur.
    """
    if "day" in group.columns.of:
        day, slot = (_number(group.of(role), group.type_of(role), role, where) for role in ("day", "slot"))
        return days_sql(day, slot, options.slot), str(ZONED), "raw", None
    column, type_ = group.of("time"), group.type_of("time")
    unit = group.columns.unit if options.time_unit == "auto" and group.columns.unit else options.time_unit
    base = _base_type(type_)
    by_size = unit == "auto"
    if base in _NAIVE:
        return f"CAST({column} AS TIMESTAMP)", str(LOCAL), "epoch_ms(raw)", None
    if base in _AWARE:
        return f"CAST({column} AS TIMESTAMPTZ)", str(ZONED), "epoch_ms(raw)", None
    told = options.time_format if options.time_format not in ORDERS else None
    has_date = "date" in group.columns.of
    if base in _NUMBERS and not told and not (by_size and group.odd_numbers):
        kind = LOCAL if unit == "excel" else NUMBER
        return f"CAST({column} AS DOUBLE)", str(kind), number_sql("raw", unit), None
    if base in _NUMBERS:
        text = digits_sql(column)
    elif base == "VARCHAR":
        text = f"CASE WHEN prefix({column}, ' ') THEN ltrim({column}) ELSE {_text(column)} END"
    elif base in _CLOCKS and has_date:
        text = f"CAST(CAST({column} AS TIME) AS VARCHAR)"
    else:
        raise _wrong_type("time", type_, where)
    if has_date:
        text = joined_sql(group.of("date"), _base_type(group.type_of("date")), text)
    if told:
        ms, kind = told_sql("raw", told)
        return text, str(kind), ms, None
    if unit == "excel":
        return text, str(LOCAL), number_sql("TRY_CAST(raw AS DOUBLE)", unit), None
    return text, kind_sql(text), text_sql("raw", "kind", unit), by_size


def _wrong_type(role: str, kind: str, where: str) -> ColumnsNotFound:
    kind = kind.partition("(")[0]  # a nested type spells out the names of its fields
    return ColumnsNotFound(f"{where}: the column for {role} has type {kind}, which can't hold it; see `columns`")
