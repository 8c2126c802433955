"""Files → records, streamed: a record is the line it starts on (None in Parquet) and a mapping of columns to values."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, TypeAlias

from isograde.datasets.columns import ALIASES
from isograde.datasets.values import kind, listed, shown, without_nan
from isograde.errors import DataError, UserError

__all__ = ["Record", "file_records"]

Record: TypeAlias = tuple[int | None, Any]

_UTF8_BOM = b"\xef\xbb\xbf"
_UTF16_BOMS = (b"\xff\xfe", b"\xfe\xff")
_GZIP_MAGIC = b"\x1f\x8b"
_BUFFER = 1 << 16
_BATCH = 256  # rows of Parquet that are in memory at once
_MAX_CELL = 2**31 - 1
_JSON_BLANKS = " \t\r\n"
_KNOWN = {"gold", "gold_scale", "rater_1"}.union(*ALIASES.values())


def file_records(path: Path) -> Callable[[], Iterator[Record]]:
    """Find the reader of a file by its name; each call of what is returned reads the file anew."""
    try:
        if path.is_dir():
            raise DataError(f"{path}: is a folder; name one file in it")
        path.stat()
    except (OSError, ValueError) as error:
        reason = "no such file" if isinstance(error, FileNotFoundError) else getattr(error, "strerror", None) or error
        raise DataError(f"{path}: {reason}") from None
    name = path.name.lower().removesuffix(".gz")
    reader = _READERS.get(Path(name).suffix)
    if reader is None:
        raise DataError(f"{path}: unknown kind of file; read are {', '.join(_READERS)}, each also with .gz")
    return lambda: _guarded(path, reader(path))


def _guarded(path: Path, records: Iterator[Record]) -> Iterator[Record]:
    """Turn trouble with the bytes of a file into an error that names it."""
    try:
        yield from records
    except UnicodeError:
        raise _encoding_error(path) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: broken gzip: {error}") from None
    except OSError as error:
        raise DataError(f"{path}: {' '.join(str(error.strerror or error).split())}") from None


def _binary(path: Path) -> io.BufferedReader:
    """Open a file's content, unpacked."""
    return io.BufferedReader(gzip.GzipFile(path), _BUFFER) if path.suffix.lower() == ".gz" else path.open("rb")


@contextmanager
def _decoded(path: Path, newline: str) -> Iterator[IO[str]]:
    """Open a file as text: UTF-8 with or without a byte order mark, UTF-16 with one."""
    with _binary(path) as stream:
        head = stream.peek(len(_UTF8_BOM))
        if head.startswith(_UTF8_BOM):
            stream.read(len(_UTF8_BOM))
        encoding = "utf-16" if head.startswith(_UTF16_BOMS) else "utf-8"
        with io.TextIOWrapper(stream, encoding=encoding, newline=newline) as opened:
            yield opened


def _encoding_error(path: Path) -> DataError:
    """Say where a file stops being UTF-8, or what it is instead."""
    with _binary(path) as stream:
        head = stream.peek(len(_UTF8_BOM))
        if head.startswith(_GZIP_MAGIC):
            return DataError(f"{path}: is packed with gzip; let its name end in .gz")
        if head.startswith(_UTF16_BOMS):
            return DataError(f"{path}: begins as UTF-16 but goes on as something else; save it as UTF-8")
        offset = 0
        for number, line in enumerate(_lines(stream), 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                at, byte = offset + error.start, line[error.start]
                return DataError(f"{path}, line {number}: not UTF-8 (byte 0x{byte:02x} at offset {at}); save it as UTF-8")
            offset += len(line)
    return DataError(f"{path}: not UTF-8; save it as UTF-8")


def _lines(stream: io.BufferedReader) -> Iterator[bytes]:
    """Read lines as far as a file that may also be broken gzip allows."""
    with suppress(EOFError, OSError, zlib.error):
        yield from stream


class _DuplicateKeyError(ValueError):
    """A key stands twice in one JSON object."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; of two values for one key neither is the right one."""
    built = dict(pairs)
    if len(built) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _DuplicateKeyError(f"key {shown(twice)} stands twice in one object")
    return built


# NaN and Infinity are no JSON; Python and pandas write them for a missing number
_JSON = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=lambda _: None)


def _json_trouble(error: ValueError | RecursionError) -> str:
    """Say in one line why a text is not JSON."""
    if isinstance(error, json.JSONDecodeError):
        return f"not JSON: {error.msg} (column {error.colno})"
    if isinstance(error, _DuplicateKeyError):
        return str(error)
    return (
        "not readable: nested too deeply"
        if isinstance(error, RecursionError)
        else "not readable: a number has thousands of digits"
    )


def _jsonl(path: Path) -> Iterator[Record]:
    """Read one object a line; lines end in \\n, so that other line separators stay in the text."""  # noqa: D301 - shows the escape
    empty = True
    with _decoded(path, "\n") as stream:
        for number, line in enumerate(stream, 1):
            if line.isspace():
                continue
            empty = False
            try:
                record = _JSON.decode(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{path}, line {number}: {_json_trouble(error)}") from None
            yield number, _object(path, number, record)
    if empty:
        raise _nothing(path)


def _json(path: Path) -> Iterator[Record]:
    """Read a list of objects; the text is in memory, the objects are decoded one by one."""
    with _decoded(path, "\n") as stream:
        content = stream.read()
    position = _after_blanks(content, 0)
    if position == len(content):
        raise _nothing(path)
    if content[position] != "[":
        hint = "; objects that stand one a line belong into a .jsonl file" if content[position] == "{" else ""
        raise DataError(f"{path}: must be a list of objects [{{…}}, {{…}}]{hint}")
    position = _after_blanks(content, position + 1)
    if content.startswith("]", position):
        raise DataError(f"{path}: the list is empty; there are no rows")
    line, counted = 1, 0
    going_on = True
    while going_on:
        line += content.count("\n", counted, position)
        counted = position
        try:
            record, position = _JSON.raw_decode(content, position)
        except (ValueError, RecursionError) as error:
            at = error.lineno if isinstance(error, json.JSONDecodeError) else line
            raise DataError(f"{path}, line {at}: {_json_trouble(error)}") from None
        yield line, _object(path, line, record)
        position = _after_blanks(content, position)
        going_on = content.startswith(",", position)
        if not going_on and not content.startswith("]", position):
            raise _unexpected(path, content, position, "',' or ']'")
        position = _after_blanks(content, position + 1)
    if position < len(content):
        raise _unexpected(path, content, position, "nothing after the list")


def _after_blanks(content: str, position: int) -> int:
    """Find the next character that is no white space of JSON."""
    while position < len(content) and content[position] in _JSON_BLANKS:
        position += 1
    return position


def _unexpected(path: Path, content: str, position: int, wanted: str) -> DataError:
    """Say what stands where something else is due."""
    line = content.count("\n", 0, position) + 1
    found = shown(content[position]) if position < len(content) else "the end of the file"
    return DataError(f"{path}, line {line}: not JSON: {wanted} is due, not {found}")


def _object(path: Path, line: int, record: Any) -> dict[str, Any]:
    """Refuse a record that is no object."""
    if not isinstance(record, dict):
        raise DataError(f'{path}, line {line}: must be an object such as {{"input": …, "output": …}}, is {kind(record)}')
    return record


def _separated(usual: str, *others: str) -> Callable[[Path], Iterator[Record]]:
    """Make the reader of a table whose first line names the columns (RFC 4180)."""

    def records(path: Path) -> Iterator[Record]:
        if csv.field_size_limit() < _MAX_CELL:
            csv.field_size_limit(_MAX_CELL)  # the whole process's; it is only ever raised, which takes nothing from anyone
        delimiter = _delimiter(path, usual, others)
        with _decoded(path, "") as stream:
            rows = _cells(path, csv.reader(stream, delimiter=delimiter, strict=True))
            named = next((cells for _, cells in rows if any(map(str.strip, cells))), None)
            if named is None:
                raise _nothing(path)
            header = _header(path, named, delimiter)
            empty = True
            for line, cells in rows:
                if len(cells) != len(header):
                    if not any(map(str.strip, cells)) and len(cells) == 1:
                        continue  # a line of blanks
                    raise DataError(
                        f"{path}, line {line}: {len(cells)} cell(s), but {len(header)} column(s): {listed(header)}; "
                        "a text that holds separators, quotes or line breaks stands in double quotes"
                    )
                empty = False
                yield line, dict(zip(header, cells, strict=True))
        if empty:
            raise DataError(f"{path}: a header and no rows (columns: {listed(header)})")

    return records


def _delimiter(path: Path, usual: str, others: tuple[str, ...]) -> str:
    """Take another delimiter where the header says it: some spreadsheets write semicolons where the comma is for decimals."""
    with _decoded(path, "") as stream:
        header = next((line for line in stream if line.strip()), "")
    for other in others:
        known = [name for name in header.split(other) if name.strip().strip('"') in _KNOWN]
        if len(known) > 1 and usual not in header:
            return other
    return usual


def _cells(path: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Pass on the lines that are not empty, each row with the line it starts on."""
    line = 1
    try:
        for cells in reader:
            if cells:
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        reason = "a quote is never closed" if "unexpected end" in str(error) else str(error)
        raise DataError(f"{path}, line {line}: {reason}") from None


def _header(path: Path, cells: list[str], delimiter: str) -> list[str]:
    """Check the names of the columns."""
    header = [name.strip() for name in cells]
    other = next((mark for mark in ",;\t|" if mark != delimiter and mark in header[0]), None)
    if len(header) == 1 and other:
        wanted = "tabs" if delimiter == "\t" else "commas"
        raise DataError(f"{path}: the header is one column, {shown(header[0])}; save the file with {wanted} between the cells")
    if any("\0" in name for name in header):
        raise DataError(f"{path}: the header holds NUL characters; save the file as UTF-8")
    unique_names(str(path), header)
    return header


def unique_names(where: str, names: list[str]) -> None:
    """Refuse a table of which two columns have one name."""
    twice = [name for position, name in enumerate(names) if name in names[:position]]
    if twice:
        raise DataError(f"{where}: two columns are called {shown(twice[0])}; rename one")


def _parquet(path: Path) -> Iterator[Record]:
    """Read a Parquet file in batches."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise UserError(f'{path}: reading Parquet needs pyarrow: pip install "isograde[data]"') from None
    empty = True
    with _binary(path) as stream:
        try:
            table = parquet.ParquetFile(stream)
            unique_names(str(path), list(table.schema_arrow.names))
            for batch in table.iter_batches(batch_size=_BATCH):
                for record in batch.to_pylist():
                    empty = False
                    yield None, without_nan(record)
        except (pa.ArrowException, ValueError) as error:
            raise DataError(f"{path}: not readable as Parquet: {shown(str(error))}") from None
        if empty:
            raise DataError(f"{path}: no rows (columns: {listed(table.schema_arrow.names)})")


def _nothing(path: Path) -> DataError:
    """Say that a file holds nothing to read."""
    with _binary(path) as stream:
        said = "nothing but blanks" if stream.read(1) else "empty"
    return DataError(f"{path}: the file is {said}; there are no rows")


_READERS: dict[str, Callable[[Path], Iterator[Record]]] = {
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
    ".json": _json,
    ".csv": _separated(",", ";", "\t"),
    ".tsv": _separated("\t"),
    ".parquet": _parquet,
}
